/* Trains and predicts with an exported library on eight threads at once, each with a state of its own.
 *
 * Every array ends at the end of a page behind which nothing may be touched, and the workspace is exactly as large as
 * asked for. Prints the losses and variables in hexadecimal, once: all threads must have the same. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "train.h"

#ifndef STACK
#define STACK (512 << 10)  /* what the header says that a call needs at most */
#endif

enum { BATCH = 7, STEPS = 20, THREADS = 8 };

typedef struct result {
    float losses[STEPS];
    float w[6 * 3];
    int32_t failure;
} result;

static void *guarded(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + page - 1) / page * page;
    char *at = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + room, page, PROT_NONE)) abort();
    return at + room - bytes;
}

static void *run(void *argument) {
    result *to = argument;
    float *x = guarded(sizeof(float) * BATCH * 6), *loss = guarded(sizeof(float));
    int32_t *labels = guarded(sizeof(int32_t) * BATCH);
    for (int i = 0; i < BATCH * 6; i++) x[i] = (float)((i * 37) % 11) / 11.0f - 0.4f;
    for (int i = 0; i < BATCH; i++) labels[i] = i % 3;
    train_state state;
    to->failure = train_state_init(&state, guarded(TRAIN_STATE_SIZE), TRAIN_STATE_SIZE);
    if (to->failure) return NULL;
    train_step_inputs in = {.x = {x, {BATCH, 6}}, .labels = {labels, {BATCH}}};
    train_step_outputs out = {.output = {loss}};
    int64_t bytes;
    for (int i = 0; i < STEPS && !to->failure; i++) {
        to->failure = train_step_sizes(&in, &out, &bytes);
        if (to->failure) break;
        out.output.data = loss;
        void *workspace = guarded((size_t)bytes);
        to->failure = train_step(&in, &out, &state, workspace, bytes);
        to->losses[i] = *loss;
    }
    memcpy(to->w, state.w, sizeof to->w);
    if (*state.steps != STEPS) to->failure = -1;
    labels[0] = 3;  /* out of range: an error, and the state stays */
    int32_t wrong = train_step(&in, &out, &state, guarded((size_t)bytes), bytes);
    if (TRAIN_KIND(wrong) != TRAIN_ERROR_INVALID_ARGUMENT || memcmp(to->w, state.w, sizeof to->w)) to->failure = -2;
    return NULL;
}

int main(void) {
    static result results[THREADS];
    pthread_t threads[THREADS];
    if (train_abi() != TRAIN_ABI || train_interface() != TRAIN_INTERFACE) return 2;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) || pthread_attr_setstacksize(&attributes, STACK)) return 3;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], &attributes, run, &results[i])) return 3;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        if (results[i].failure) {
            printf("thread %d: %s\n", i, train_strerror(results[i].failure));
            return 4;
        }
        if (memcmp(&results[i], &results[0], sizeof(result))) return 5;
    }
    for (int i = 0; i < STEPS; i++) printf("%a\n", results[0].losses[i]);
    for (int i = 0; i < 6 * 3; i++) printf("%a\n", results[0].w[i]);
    return 0;
}
