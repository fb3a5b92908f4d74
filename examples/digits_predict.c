/* Read the test images with the library that examples/digits.py made: no Python, no twofold, libc and libm only.
 *
 *     cc -O2 digits_predict.c -I build/demo build/demo/libdigits.a -lm -o digits_predict
 *     ./digits_predict build/demo/test.bin
 *
 * The file holds the number of images (int64), the pixels (float32, 64 an image), and the digits (int64). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "digits.h"

#define PIXELS 64
#define CLASSES 10
#define ROUNDS 200

static void *need(void *memory) {
    if (!memory) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

static double seconds(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv) {
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    int64_t count = 0;
    if (!file || fread(&count, sizeof count, 1, file) != 1 || count < 1 || count > 1000000) {
        fputs("usage: digits_predict test.bin\n", stderr);
        return 2;
    }
    size_t images = (size_t)count;
    float *pixels = need(malloc(images * PIXELS * sizeof *pixels));
    int64_t *digits = need(malloc(images * sizeof *digits));
    int64_t *guesses = need(malloc(images * sizeof *guesses));
    float *scores = need(malloc(images * CLASSES * sizeof *scores));
    if (fread(pixels, sizeof *pixels, images * PIXELS, file) != images * PIXELS ||
        fread(digits, sizeof *digits, images, file) != images) {
        fputs("the file is too short\n", stderr);
        return 1;
    }
    fclose(file);

    /* The library allocates nothing: it says how much memory a call works in, and we give it. */
    digits_serving_default_inputs in = {.images = {pixels, {count, PIXELS}}};
    digits_serving_default_outputs out = {.digit = {.data = guesses}, .scores = {.data = scores}};
    int64_t size = 0;
    int32_t status = digits_serving_default_sizes(&in, &out, &size);
    void *workspace = need(aligned_alloc(64, ((size_t)size + 64) / 64 * 64));
    if (!status) status = digits_serving_default(&in, &out, workspace, size);
    if (status) {
        fprintf(stderr, "%s\n", digits_strerror(status));
        return 1;
    }
    int64_t right = 0;
    for (size_t i = 0; i < images; i++) right += guesses[i] == digits[i];

    double start = seconds();
    for (int round = 0; round < ROUNDS && !status; round++)
        status = digits_serving_default(&in, &out, workspace, size);
    double each = (seconds() - start) / ROUNDS / (double)count;
    printf("accuracy %.4f, %.2f us an image\n", (double)right / (double)count, each * 1e6);
    free(workspace);
    free(scores);
    free(guesses);
    free(digits);
    free(pixels);
    return status != 0;
}
