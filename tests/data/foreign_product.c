/* Calls the compiled product from C, on the pool's own threads, where there is no Python: on Windows and on Arm.

   `layout.h` says how the process's memory is laid out, as `codegen/runtime.py` does for Python. Ends with 0 when every
   result is within float32's bound of one in double, and the same on three threads as on one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"

#ifdef _WIN32
#include <windows.h>
int _fltused;  /* Microsoft's C library has this; code that computes with floats refers to it. */
__asm__(".globl __chkstk\n__chkstk: jmp ___chkstk_ms\n");
#define SLEEP() Sleep(5)
#else
#include <pthread.h>
#include <unistd.h>
#define SLEEP() usleep(5000)
#endif

typedef long long i64;

/* The entry for Python's arrays is in the same object, and is not called. */
void PyErr_Clear(void) {}
void *PyEval_SaveThread(void) { return 0; }
void PyEval_RestoreThread(void *state) { (void)state; }
i64 PyLong_AsLong(void *number) { (void)number; return 0; }
i64 PyLong_AsLongLong(void *number) { (void)number; return 0; }
void Py_IncRef(void *object) { (void)object; }

__attribute__((aligned(64))) char gemmlab_runtime[BYTES];
void gemmlab_pool_init(void *pool);
void gemmlab_worker(void *pool, void *workspace, i64 seen);
i64 c_entry(i64 m, i64 n, i64 k, float alpha, const float *a, i64 a_row, i64 a_col, const float *b, i64 b_row, i64 b_col,
            float beta, float *c, i64 ldc, i64 threads);

static i64 *word(int at) { return (i64 *)(gemmlab_runtime + at); }
static void *workspace(void) { return calloc(1, WORKSPACE_BYTES); }

#ifdef _WIN32
static DWORD WINAPI work(LPVOID space) { gemmlab_worker(gemmlab_runtime, space, 0); return 0; }
static void start(void) { CreateThread(0, 0, work, workspace(), 0, 0); }
#else
static void *work(void *space) { gemmlab_worker(gemmlab_runtime, space, 0); return 0; }
static void start(void) { pthread_t thread; pthread_create(&thread, 0, work, workspace()); }
#endif

static float element(void) { return (float)rand() / (float)RAND_MAX * 2 - 1; }

/* Largest error of one product, as a share of its bound; 2 where threads make a difference. */
static double product(int m, int n, int k, int turned, float alpha, float beta) {
    float *a = malloc(4 * m * k), *b = malloc(4 * k * n), *before = malloc(4 * m * n);
    float *c = malloc(4 * m * n), *d = malloc(4 * m * n);
    i64 a_row = turned & 1 ? 1 : k, a_col = turned & 1 ? m : 1, b_row = turned & 2 ? 1 : n, b_col = turned & 2 ? k : 1;
    double worst = 0;
    for (int i = 0; i < m * k; ++i) a[i] = element();
    for (int i = 0; i < k * n; ++i) b[i] = element();
    for (int i = 0; i < m * n; ++i) c[i] = d[i] = before[i] = element();
    c_entry(m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, n, 1);
    c_entry(m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, d, n, 3);
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            double sum = 0, size = 0, old = (double)beta * before[i * n + j];
            for (int p = 0; p < k; ++p) {
                double term = (double)a[i * a_row + p * a_col] * b[p * b_row + j * b_col];
                sum += term;
                size += fabs(term);
            }
            double bound = (fabs(alpha) * size + fabs(old)) * (k + 3) * 0x1p-24;
            worst = fmax(worst, fabs(c[i * n + j] - (alpha * sum + old)) / bound);
        }
    if (memcmp(c, d, 4 * m * n)) worst = 2;
    free(a), free(b), free(before), free(c), free(d);
    return worst;
}

int main(void) {
    double worst = 0;
    int calls = 0;
    for (int slot = 0; slot < SLOTS; ++slot) *word(SLOTS_AT + 16 * slot) = slot > 0;
    *word(SLOTS_AT + 8) = (i64)workspace();
    gemmlab_pool_init(gemmlab_runtime);
    *word(DEFAULT_THREADS_AT) = 3;
    for (int worker = 0; worker < 2; ++worker) {
        start();
        ++*word(WORKERS_AT);
    }
    for (int turn = 0; turn < 12; ++turn) {
        if (turn % 3 == 0) SLEEP();  /* Idle workers fall asleep after a millisecond, and must wake. */
        worst = fmax(worst, product(1, 1, 1, turn & 3, 1.5f, 0));
        worst = fmax(worst, product(37, 29, 53, turn & 3, 1, 0.5f));
        worst = fmax(worst, product(130, 97, 101, turn & 3, -2, turn & 4 ? 0 : 1));
        worst = fmax(worst, product(turn & 1 ? 300 : 1, turn & 1 ? 1 : 300, 200, turn & 3, 1, 0));
        calls += 8;
    }
    printf("%d calls, worst error %.3f of the bound\n", calls, worst);
    return !(worst < 1);
}
