// An interpreter a thread: a stack in local memory, a program that differs from thread to thread.
#define STACK 16

enum Op { HALT, PUSH, ADD, SUB, MUL, DUP, SWAP, JUMP_IF_ZERO, JUMP, LESS, XOR, SHIFT_LEFT, DIVIDE, LOAD, STORE, COUNT };

struct Instruction {
    int op, arg;
};

extern "C" __global__ void interpret(const Instruction* code, int length, const int* inputs, int* results, int* steps,
                                     int n, int limit) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= n) return;
    int stack[STACK], memory[4] = {inputs[thread], thread, 0, 0};
    for (int k = 0; k < STACK; k++) stack[k] = 0;
    int sp = 0, pc = 0, step = 0;
#define POP() stack[--sp & (STACK - 1)]
#define PUSH_(v) stack[sp++ & (STACK - 1)] = (v)
    while (step++ < limit && pc < length) {
        Instruction now = code[pc++];
        int a, b;
        switch (now.op) {
            case HALT: pc = length; break;
            case PUSH: PUSH_(now.arg); break;
            case ADD: b = POP(); a = POP(); PUSH_(a + b); break;
            case SUB: b = POP(); a = POP(); PUSH_(a - b); break;
            case MUL: b = POP(); a = POP(); PUSH_(a * b); break;
            case DUP: a = POP(); PUSH_(a); PUSH_(a); break;
            case SWAP: b = POP(); a = POP(); PUSH_(b); PUSH_(a); break;
            case JUMP_IF_ZERO: if (POP() == 0) pc = now.arg; break;
            case JUMP: pc = now.arg; break;
            case LESS: b = POP(); a = POP(); PUSH_(a < b ? 1 : 0); break;
            case XOR: b = POP(); a = POP(); PUSH_(a ^ b); break;
            case SHIFT_LEFT: b = POP(); a = POP(); PUSH_(a << (b & 31)); break;
            case DIVIDE: b = POP(); a = POP(); PUSH_(b == 0 ? -1 : a / b); break;
            case LOAD: PUSH_(memory[now.arg & 3]); break;
            case STORE: memory[now.arg & 3] = POP(); break;
            case COUNT: PUSH_(__popc(POP())); break;
        }
    }
    results[thread] = memory[2];
    steps[thread] = step;
}
