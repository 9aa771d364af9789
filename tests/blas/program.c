/* A program that knows BLAS and nothing of Python: it checks what it is linked with, and says what it saw.

   program threads   eight threads multiply at once, matrices large enough for the library's own threads
   program fork      so do a parent and its child, and the child's child
   program errors    illegal arguments reach the program's own handlers
   program bare      there is no memory for workspaces */

#include <dirent.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 150, LD = N + 3 };

void sgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k, const float *alpha,
            const float *a, const int *lda, const float *b, const int *ldb, const float *beta, float *c, const int *ldc);
void cblas_sgemm(int layout, int transa, int transb, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc);

void xerbla_(const char *name, const int *info, size_t length) {
    printf("%.*s %d\n", (int)length, name, *info);
}

void cblas_xerbla(int info, const char *name, const char *form, ...) {
    va_list values;
    va_start(values, form);
    printf("%s %d ", name, info);
    vprintf(*form ? form : "\n", values);
    va_end(values);
}

struct Work {
    float a[N * LD], b[N * LD], c[N * LD];
};

/* How many elements of 2 A B - C are wrong: small whole numbers, so that they are exact. */
static int wrong(struct Work *w, int seed) {
    const int n = N, ld = LD;
    const float alpha = 2, beta = -1;
    int count = 0;
    for (int i = 0; i < N * LD; i++) {
        w->a[i] = (float)((i * 7 + seed) % 9 - 4);
        w->b[i] = (float)((i * 5 + seed) % 7 - 3);
        w->c[i] = (float)(i % 3);
    }
    if (seed % 2)
        sgemm_("N", "t", &n, &n, &n, &alpha, w->a, &ld, w->b, &ld, &beta, w->c, &ld);
    else
        cblas_sgemm(102, 111, 112, N, N, N, alpha, w->a, LD, w->b, LD, beta, w->c, LD);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < LD; i++) {
            float sum = 0;
            for (int p = 0; p < N; p++) sum += w->a[i + p * LD] * w->b[j + p * LD];
            float old = (float)((i + j * LD) % 3);
            count += w->c[i + j * LD] != (i < N ? 2 * sum - old : old);
        }
    return count;
}

static struct Work works[8];

static void *run(void *index) {
    long found = 0;
    for (int round = 0; round < 4; round++) found += wrong(&works[(long)index], (int)(long)index + round);
    return (void *)found;
}

static long eight(void) {
    pthread_t threads[8];
    long total = 0;
    for (long i = 0; i < 8; i++) pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < 8; i++) {
        void *found;
        pthread_join(threads[i], &found);
        total += (long)found;
    }
    return total;
}

/* Threads of this process. */
static int alive(void) {
    DIR *tasks = opendir("/proc/self/task");
    int found = 0;
    for (struct dirent *entry; (entry = readdir(tasks));) found += entry->d_name[0] != '.';
    closedir(tasks);
    return found;
}

static int in_child(int depth) {
    pid_t child = fork();
    if (child == 0) _exit((eight() != 0) | (depth ? in_child(depth - 1) : 0));
    int status;
    waitpid(child, &status, 0);
    return status;
}

static void errors(void) {
    const int one = 1, two = 2, minus = -1;
    const float x = 1;
    float y[4] = {5, 5, 5, 5};
    sgemm_("x", "N", &one, &one, &one, &x, &x, &one, &x, &one, &x, y, &one);
    sgemm_("N", "n", &two, &minus, &one, &x, &x, &two, &x, &one, &x, y, &two);
    sgemm_("C", "N", &one, &one, &two, &x, &x, &one, &x, &two, &x, y, &one);
    cblas_sgemm(100, 111, 111, 1, 1, 1, 1, &x, 1, &x, 1, 1, y, 1);
    cblas_sgemm(101, 7, 111, 1, 1, 1, 1, &x, 1, &x, 1, 1, y, 1);
    cblas_sgemm(102, 111, 110, 1, 1, 1, 1, &x, 1, &x, 1, 1, y, 1);
    cblas_sgemm(101, 111, 111, -1, 1, 1, 1, &x, 1, &x, 1, 1, y, 1);
    cblas_sgemm(101, 111, 111, 1, -1, 1, 1, &x, 1, &x, 1, 1, y, 1);
    cblas_sgemm(101, 111, 111, 1, 1, 2, 1, &x, 1, &x, 1, 1, y, 1);
    cblas_sgemm(101, 111, 111, 1, 2, 1, 1, &x, 1, &x, 1, 1, y, 2);
    cblas_sgemm(101, 111, 111, 1, 2, 1, 1, &x, 1, &x, 2, 1, y, 1);
    cblas_sgemm(102, 111, 111, 2, 1, 1, 1, &x, 1, &x, 1, 1, y, 2);
    printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    setbuf(stdout, NULL);
    if (!strcmp(what, "threads")) {
        long found = eight();
        printf("%ld wrong, %d threads\n", found, alive());
    }
    if (!strcmp(what, "fork")) {
        long found = eight();
        printf("%ld wrong, status %d\n", found, in_child(1));
    }
    if (!strcmp(what, "errors")) errors();
    if (!strcmp(what, "bare")) {
        struct rlimit none = {1, 1};
        setrlimit(RLIMIT_AS, &none);
        printf("%d %d wrong\n", wrong(&works[0], 0), wrong(&works[0], 1));
    }
    return 0;
}
