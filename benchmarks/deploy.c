/* Times one prediction of a library that tf.export.native made, and of ONNX Runtime on the same weights.
 *
 *     deploy LIBRARY CPU_ROUNDS [ONNXRUNTIME_LIBRARY MODEL]
 *
 * Rounds of both alternate. Prints lines `name batch seconds`, one for each round, and `load library seconds`, the
 * time in which the library is opened and has predicted once. Results must agree. ONNX Runtime is reached through the
 * table of functions of its C API, whose order does not change. */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "digits.h"

enum { FEATURES = 64, CLASSES = 10, LARGEST = 64, CALLS = 400 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *text) {
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static float x[LARGEST][FEATURES], ours[LARGEST][CLASSES], theirs[LARGEST][CLASSES];
static _Alignas(64) char workspace[1 << 20];

typedef int32_t sizes_fn(const digits_predict_inputs *, digits_predict_outputs *, int64_t *);
typedef int32_t predict_fn(const digits_predict_inputs *, const digits_predict_outputs *, void *, int64_t);

static sizes_fn *sizes;
static predict_fn *predict;

static void call_ours(int64_t batch) {
    digits_predict_inputs in = {.x = {&x[0][0], {batch, FEATURES}}};
    digits_predict_outputs out = {.output = {&ours[0][0], {batch, CLASSES}}};
    if (predict(&in, &out, workspace, sizeof workspace)) fail("the prediction failed");
}

/* Numbers in OrtApi, the table of ONNX Runtime's functions. */
enum { GET_MESSAGE = 2, CREATE_ENV = 3, CREATE_SESSION = 7, RUN = 9, CREATE_OPTIONS = 10, SET_THREADS = 24,
       CREATE_TENSOR = 49, CREATE_MEMORY_INFO = 69 };
typedef struct { const void *(*get)(uint32_t); const char *(*version)(void); } api_base;

static void *const *api;
static void *session[2], *memory_info;
static void *tensors[2][2];  /* batch 1 and the largest; input and result */

static void check(void *status) {
    if (status) fail(((const char *(*)(void *))api[GET_MESSAGE])(status));
}

static void *tensor(float *data, int64_t rows, int64_t columns) {
    void *made;
    int64_t shape[2] = {rows, columns};
    check(((void *(*)(void *, void *, size_t, const int64_t *, size_t, int, void **))api[CREATE_TENSOR])(
        memory_info, data, (size_t)(rows * columns) * sizeof(float), shape, 2, 1, &made));
    return made;
}

static void start_theirs(const char *path, const char *model) {
    void *library = dlopen(path, RTLD_NOW), *env, *options;
    if (!library) fail(dlerror());
    const api_base *base = ((const api_base *(*)(void))dlsym(library, "OrtGetApiBase"))();
    api = base->get(11);
    if (!api) fail("this release of ONNX Runtime has no version 11 of its API");
    check(((void *(*)(int, const char *, void **))api[CREATE_ENV])(3, "deploy", &env));
    check(((void *(*)(int, int, void **))api[CREATE_MEMORY_INFO])(1, 0, &memory_info));
    for (int n = 0; n < 2; n++) {  /* on one thread; on as many as it likes */
        check(((void *(*)(void **))api[CREATE_OPTIONS])(&options));
        if (n == 0) check(((void *(*)(void *, int))api[SET_THREADS])(options, 1));
        check(((void *(*)(void *, const char *, void *, void **))api[CREATE_SESSION])(env, model, options, &session[n]));
    }
    for (int n = 0; n < 2; n++) {
        tensors[n][0] = tensor(&x[0][0], n ? LARGEST : 1, FEATURES);
        tensors[n][1] = tensor(&theirs[0][0], n ? LARGEST : 1, CLASSES);
    }
}

static void call_theirs(int64_t batch, int which) {
    static const char *const inputs[] = {"x"}, *const outputs[] = {"output"};
    void **pair = tensors[batch > 1];
    check(((void *(*)(void *, const void *, const char *const *, void *const *, size_t, const char *const *, size_t,
                      void **))api[RUN])(session[which], NULL, inputs, &pair[0], 1, outputs, 1, &pair[1]));
}

static void measured(const char *name, int64_t batch, int which) {
    double start = now();
    for (int i = 0; i < CALLS; i++) {
        if (which < 0) call_ours(batch);
        else call_theirs(batch, which);
    }
    printf("%s %d %.4g\n", name, (int)batch, (now() - start) / CALLS);
}

int main(int count, char **given) {
    if (count != 3 && count != 5) fail("usage: deploy LIBRARY ROUNDS [ONNXRUNTIME_LIBRARY MODEL]");
    for (int i = 0; i < LARGEST * FEATURES; i++) (&x[0][0])[i] = (float)(i * 7919 % 1000) / 1000.0f;
    double start = now();
    void *library = dlopen(given[1], RTLD_NOW);
    if (!library) fail(dlerror());
    sizes = (sizes_fn *)dlsym(library, "digits_predict_sizes");
    predict = (predict_fn *)dlsym(library, "digits_predict");
    call_ours(1);
    printf("load library %.4g\n", now() - start);

    int64_t bytes;
    digits_predict_inputs in = {.x = {&x[0][0], {LARGEST, FEATURES}}};
    digits_predict_outputs out = {.output = {&ours[0][0], {0, 0}}};
    if (sizes(&in, &out, &bytes) || bytes > (int64_t)sizeof workspace) fail("the workspace is too small");
    if (count == 5) {
        start_theirs(given[3], given[4]);
        call_ours(LARGEST);
        call_theirs(LARGEST, 0);
        for (int i = 0; i < LARGEST * CLASSES; i++)
            if (!(fabsf((&ours[0][0])[i] - (&theirs[0][0])[i]) < 1e-5f)) fail("the results differ");
    }
    for (int round = 0; round < atoi(given[2]); round++) {
        for (int64_t batch = 1; batch <= LARGEST; batch += LARGEST - 1) {
            measured("twofold", batch, -1);
            if (count == 5) {
                measured("onnxruntime-1-thread", batch, 0);
                measured("onnxruntime", batch, 1);
            }
        }
    }
    return 0;
}
