/* The same entropy in every run, for comparing programs that draw their witnesses from it, as halo2-ecc and
 * snark-verifier-sdk do. Never for a proof that has something to hide.
 *
 *   cc -O2 -shared -fPIC entropy.c -o entropy.so -ldl; LD_PRELOAD=./entropy.so program
 *
 * The crate getrandom 0.2 asks through libc's syscall(). Every call gets the same bytes (splitmix64), so that it doesn't
 * matter who else draws, and when: a hash map's keys, say. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

static long fill(unsigned char *bytes, size_t length) {
    uint64_t state = 0;
    for (size_t i = 0; i < length; i++) {
        uint64_t z = state += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        bytes[i] = (unsigned char)(z >> 56);
    }
    return (long)length;
}

long syscall(long number, ...) {
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_getrandom)
        return fill((unsigned char *)a[0], (size_t)a[1]);
    static long (*next)(long, ...);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "syscall");
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
