/* Calls each function of the library. Arguments: a folder, an SRS of 2^k points, k, ParamsKZG of 2^6 points. Prints what the caller compares, and waits
 * for the end of its input, so that the caller can look at this process from outside. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spillproof.h"

#define EXPECT(expected, call)                                                                                         \
    do {                                                                                                               \
        int status = (call);                                                                                           \
        if (status != (expected)) {                                                                                    \
            printf("line %d: %d instead of %d: %s\n", __LINE__, status, (expected), spillproof_error_message());       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("line %d: %s\n", __LINE__, #condition);                                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define PIECE 4096
#define LITTLE 64

/* Splitmix64, as the test in Rust has it. */
static uint64_t word(uint64_t index) {
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Scalar number index, of 252 bits. */
static void scalar(uint64_t index, uint8_t *out) {
    for (int limb = 0; limb < 4; limb++) {
        uint64_t value = word(4 * index + (uint64_t)limb);
        if (limb == 3) value &= 0x0fffffffffffffffu;
        for (int byte = 0; byte < 8; byte++) out[8 * limb + byte] = (uint8_t)(value >> (8 * byte));
    }
}

static void print(const char *name, const uint8_t *bytes, int count) {
    printf("%s ", name);
    for (int i = 0; i < count; i++) printf("%02x", bytes[i]);
    printf("\n");
}

static spillproof_column *polynomial(const spillproof_session *session, uint64_t first, uint64_t count) {
    static uint8_t piece[PIECE * SPILLPROOF_SCALAR_BYTES];
    spillproof_column *column = 0;
    EXPECT(SPILLPROOF_OK, spillproof_column_begin(session, count, &column));
    for (uint64_t done = 0; done < count;) {
        uint64_t now = count - done < PIECE ? count - done : PIECE;
        for (uint64_t i = 0; i < now; i++) scalar(first + done + i, piece + SPILLPROOF_SCALAR_BYTES * i);
        EXPECT(SPILLPROOF_OK, spillproof_column_push(column, piece, now));
        done += now;
    }
    return column;
}

/* The polynomial of 2^k coefficients, which this process never holds. */
static void large(const spillproof_session *session, const char *srs_path, uint32_t k) {
    uint8_t commitment[64], point[32], value[32], proof[64];
    spillproof_srs *srs = 0;
    EXPECT(SPILLPROOF_OK, spillproof_srs_open(session, srs_path, &srs));
    spillproof_column *column = polynomial(session, 0, (uint64_t)1 << k);
    const spillproof_column *columns[1] = {column};
    EXPECT(SPILLPROOF_OK, spillproof_commit_columns(srs, SPILLPROOF_MONOMIAL, columns, 1, commitment));
    print("commitment", commitment, 64);
    scalar(UINT64_C(1) << 40, point);
    EXPECT(SPILLPROOF_OK, spillproof_open_column(srs, column, point, value, proof));
    print("value", value, 32);
    print("proof", proof, 64);
    uint32_t is_right = 2;
    EXPECT(SPILLPROOF_OK, spillproof_check_opening(srs, commitment, point, value, proof, &is_right));
    CHECK(is_right == 1);
    value[0] ^= 1;
    EXPECT(SPILLPROOF_OK, spillproof_check_opening(srs, commitment, point, value, proof, &is_right));
    CHECK(is_right == 0);

    spillproof_domain domain = {k, SPILLPROOF_HALO2, 0, {1}};
    spillproof_column *values = 0;
    EXPECT(SPILLPROOF_OK, spillproof_column_ntt(column, &domain, &values));
    columns[0] = values;
    uint8_t by_values[64];
    EXPECT(SPILLPROOF_OK, spillproof_commit_columns(srs, SPILLPROOF_LAGRANGE, columns, 1, by_values));
    CHECK(memcmp(commitment, by_values, 64) == 0);
    spillproof_srs_close(srs);
    spillproof_column_close(column);
    spillproof_column_close(values);
}

/* The same over buffers, which equals the same over columns. */
static void little(const spillproof_session *session, const spillproof_srs *srs) {
    uint8_t coefficients[LITTLE * 32], values[LITTLE * 32], back[LITTLE * 32], points[LITTLE * 64];
    uint8_t commitments[2 * 64], commitment[64], sum[64], point[32], value[32], proof[64], value2[32], proof2[64];
    for (uint64_t i = 0; i < LITTLE; i++) scalar(1000 + i, coefficients + 32 * i);
    spillproof_column *both[2] = {polynomial(session, 1000, LITTLE), polynomial(session, 2000, LITTLE - 3)};
    EXPECT(SPILLPROOF_OK, spillproof_commit_columns(srs, SPILLPROOF_MONOMIAL, (const spillproof_column *const *)both, 2, commitments));
    EXPECT(SPILLPROOF_OK, spillproof_commit(srs, SPILLPROOF_MONOMIAL, coefficients, LITTLE, commitment));
    CHECK(memcmp(commitment, commitments, 64) == 0 && memcmp(commitment, commitments + 64, 64) != 0);
    EXPECT(SPILLPROOF_OK, spillproof_commit(srs, SPILLPROOF_MONOMIAL, 0, 0, sum));
    for (int i = 0; i < 64; i++) CHECK(sum[i] == 0);

    scalar(5, point);
    EXPECT(SPILLPROOF_OK, spillproof_open(srs, coefficients, LITTLE, point, value, proof));
    EXPECT(SPILLPROOF_OK, spillproof_open_column(srs, both[0], point, value2, proof2));
    CHECK(memcmp(value, value2, 32) == 0 && memcmp(proof, proof2, 64) == 0);

    /* The points of the SRS are commitments to powers of X: their sum is the commitment. */
    uint8_t power[LITTLE * 32] = {0};
    for (uint64_t i = 0; i < LITTLE; i++) {
        power[32 * i] = 1;
        EXPECT(SPILLPROOF_OK, spillproof_commit(srs, SPILLPROOF_MONOMIAL, power, LITTLE, points + 64 * i));
        power[32 * i] = 0;
    }
    EXPECT(SPILLPROOF_OK, spillproof_msm(session, points, coefficients, LITTLE, sum));
    CHECK(memcmp(sum, commitment, 64) == 0);
    spillproof_points *on_disk = 0;
    EXPECT(SPILLPROOF_OK, spillproof_points_begin(session, LITTLE, &on_disk));
    EXPECT(SPILLPROOF_INVALID, spillproof_points_msm(on_disk, both[0], sum));
    EXPECT(SPILLPROOF_OK, spillproof_points_push(on_disk, points, 1));
    EXPECT(SPILLPROOF_OK, spillproof_points_push(on_disk, points + 64, LITTLE - 1));
    EXPECT(SPILLPROOF_OK, spillproof_points_msm(on_disk, both[0], sum));
    CHECK(memcmp(sum, commitment, 64) == 0);
    spillproof_points_close(on_disk);

    /* Over both roots and a coset, there and back, in place. */
    for (uint32_t roots = 0; roots < 2; roots++) {
        spillproof_domain domain = {6, roots, 0, {7}};
        EXPECT(SPILLPROOF_OK, spillproof_ntt(session, &domain, coefficients, LITTLE, values));
        print(roots == SPILLPROOF_HALO2 ? "ntt_halo2" : "ntt_arkworks", values, sizeof values);
        spillproof_column *transformed = 0;
        EXPECT(SPILLPROOF_OK, spillproof_column_ntt(both[0], &domain, &transformed));
        EXPECT(SPILLPROOF_OK, spillproof_column_read(transformed, 0, LITTLE, back));
        CHECK(memcmp(values, back, sizeof back) == 0);
        EXPECT(SPILLPROOF_OK, spillproof_column_read(transformed, 5, 3, back));
        CHECK(memcmp(values + 5 * 32, back, 3 * 32) == 0);
        EXPECT(SPILLPROOF_INVALID, spillproof_column_read(transformed, LITTLE - 1, 2, back));
        domain.is_inverse = 1;
        EXPECT(SPILLPROOF_OK, spillproof_ntt(session, &domain, values, LITTLE, values));
        CHECK(memcmp(values, coefficients, sizeof values) == 0);
        spillproof_column_close(transformed);
    }
    spillproof_column_close(both[0]);
    spillproof_column_close(both[1]);
}

static void *failing_thread(void *handle) {
    spillproof_srs *srs = 0;
    EXPECT(SPILLPROOF_FILE, spillproof_srs_open(handle, "none.srs", &srs));
    CHECK(strstr(spillproof_error_message(), "none.srs"));
    return 0;
}

/* What is wrong is said, with its kind, and nothing is handed out. */
static void refusals(const char *dir, spillproof_session *session, const spillproof_srs *srs, const char *srs_path) {
    uint8_t values[2 * 32], point[64];
    memset(values, 0xff, sizeof values);
    scalar(1, values);
    EXPECT(SPILLPROOF_INVALID, spillproof_commit(srs, SPILLPROOF_MONOMIAL, values, 2, point));
    CHECK(strstr(spillproof_error_message(), "the scalar at index 1"));
    CHECK(spillproof_error_needed_bytes() == 0);
    EXPECT(SPILLPROOF_INVALID, spillproof_commit(srs, 2, values, 1, point));
    EXPECT(SPILLPROOF_INVALID, spillproof_commit(0, SPILLPROOF_MONOMIAL, values, 1, point));
    CHECK(strstr(spillproof_error_message(), "null pointer in place of an SRS"));
    EXPECT(SPILLPROOF_INVALID, spillproof_commit(srs, SPILLPROOF_MONOMIAL, 0, 1, point));
    EXPECT(SPILLPROOF_INVALID, spillproof_commit(srs, SPILLPROOF_MONOMIAL, values, UINT64_MAX, point));
    EXPECT(SPILLPROOF_INVALID, spillproof_commit(srs, SPILLPROOF_MONOMIAL, values, 1, 0));
    memset(point, 1, sizeof point);
    EXPECT(SPILLPROOF_INVALID, spillproof_msm(session, point, values, 1, point));
    CHECK(strstr(spillproof_error_message(), "not on the curve"));

    spillproof_column *column = 0;
    EXPECT(SPILLPROOF_OK, spillproof_column_begin(session, 2, &column));
    EXPECT(SPILLPROOF_INVALID, spillproof_column_push(column, values, 2));
    EXPECT(SPILLPROOF_OK, spillproof_column_push(column, values, 1));
    EXPECT(SPILLPROOF_INVALID, spillproof_column_read(column, 0, 1, values));
    CHECK(strstr(spillproof_error_message(), "1 of 2 elements"));
    scalar(2, values + 32);
    EXPECT(SPILLPROOF_INVALID, spillproof_column_push(column, values, 2));
    EXPECT(SPILLPROOF_OK, spillproof_column_push(column, values + 32, 1));
    EXPECT(SPILLPROOF_OK, spillproof_column_read(column, 1, 1, point));
    CHECK(memcmp(point, values + 32, 32) == 0);
    spillproof_column_close(column);
    spillproof_column_close(0);

    /* Lengths that no disk has, and no file. */
    column = 0;
    for (int log = 47; log < 60; log++) {
        int kind = spillproof_column_begin(session, 1ull << log, &column);
        CHECK(!column && (kind == SPILLPROOF_BUDGET || kind == SPILLPROOF_FILE || (kind == SPILLPROOF_INVALID && log >= 58)));
    }
    EXPECT(SPILLPROOF_INVALID, spillproof_column_begin(session, UINT64_MAX, &column));

    spillproof_domain domain = {6, 0, 0, {0}};
    EXPECT(SPILLPROOF_INVALID, spillproof_ntt(session, &domain, values, 1, values));
    CHECK(strstr(spillproof_error_message(), "shift"));
    domain.log_n = 29, domain.shift[0] = 1;
    EXPECT(SPILLPROOF_INVALID, spillproof_ntt(session, &domain, values, 1, values));

    pthread_t thread;
    CHECK(pthread_create(&thread, 0, failing_thread, session) == 0 && pthread_join(thread, 0) == 0);
    CHECK(strstr(spillproof_error_message(), "29"));

    spillproof_session *other = 0;
    EXPECT(SPILLPROOF_FILE, spillproof_session_open(1 << 20, srs_path, 1, &other));
    EXPECT(SPILLPROOF_FILE, spillproof_session_open(1 << 20, "", 1, &other));
    EXPECT(SPILLPROOF_INVALID, spillproof_session_open(1 << 20, dir, UINT32_MAX, &other));
    CHECK(strstr(spillproof_error_message(), "1024 at most"));
    CHECK(!other);
    EXPECT(SPILLPROOF_OK, spillproof_session_open(128 << 10, dir, 1, &other));
    spillproof_srs *srs_of_other = 0;
    EXPECT(SPILLPROOF_OK, spillproof_srs_open(other, srs_path, &srs_of_other));
    EXPECT(SPILLPROOF_BUDGET, spillproof_commit(srs_of_other, SPILLPROOF_MONOMIAL, values, 1, point));
    CHECK(spillproof_error_needed_bytes() > 128 << 10);
    spillproof_session_close(other);
    spillproof_srs_close(srs_of_other);

    spillproof_plan plan;
    EXPECT(SPILLPROOF_BUDGET, spillproof_plan_job(SPILLPROOF_JOB_COMMIT, 1 << 20, 128 << 10, 2, &plan));
    uint64_t needed = spillproof_error_needed_bytes();
    for (uint32_t job = SPILLPROOF_JOB_COMMIT; job <= SPILLPROOF_JOB_NTT; job++) {
        EXPECT(SPILLPROOF_OK, spillproof_plan_job(job, 1 << 20, 16 << 20, 2, &plan));
        CHECK(plan.budget_bytes == 16 << 20 && plan.peak_bytes <= 16 << 20 && plan.bytes_read >= 32 << 20);
        CHECK(plan.smallest_budget_bytes <= 16 << 20 && plan.seconds > 0 && plan.disk_bytes >= 32 << 20);
        CHECK(job != SPILLPROOF_JOB_COMMIT || plan.smallest_budget_bytes == needed);
    }
    EXPECT(SPILLPROOF_INVALID, spillproof_plan_job(4, 1 << 20, 16 << 20, 2, &plan));
    EXPECT(SPILLPROOF_INVALID, spillproof_plan_job(0, UINT64_MAX, 16 << 20, 2, &plan));
}

int main(int count, char **arguments) {
    CHECK(count == 5);
    CHECK(strcmp(spillproof_version(), "0.1.0") == 0);
    char path[2][4096];
    snprintf(path[0], sizeof path[0], "%s/little.srs", arguments[1]);
    snprintf(path[1], sizeof path[1], "%s/imported.srs", arguments[1]);
    uint8_t secret[32] = {5};
    spillproof_session *session = 0;
    spillproof_srs *srs = 0;
    spillproof_srs_info info;

    EXPECT(SPILLPROOF_OK, spillproof_session_open(16 << 20, arguments[1], 2, &session));
    large(session, arguments[2], (uint32_t)atoi(arguments[3]));
    puts("large done");
    fflush(stdout);
    while (getchar() == '\n') break;

    EXPECT(SPILLPROOF_OK, spillproof_srs_generate(session, path[0], 6, secret));
    EXPECT(SPILLPROOF_OK, spillproof_srs_verify(session, path[0]));
    EXPECT(SPILLPROOF_OK, spillproof_srs_import(session, arguments[4], path[1]));
    EXPECT(SPILLPROOF_FORMAT, spillproof_srs_import(session, path[0], path[1]));
    EXPECT(SPILLPROOF_FORMAT, spillproof_srs_verify(session, arguments[4]));
    EXPECT(SPILLPROOF_OK, spillproof_srs_open(session, path[1], &srs));
    EXPECT(SPILLPROOF_OK, spillproof_srs_inspect(srs, &info));
    CHECK(info.k == 6 && info.has_monomial == 1 && info.has_lagrange == 1);
    print("s_g2", info.s_g2, SPILLPROOF_G2_BYTES);
    little(session, srs);
    refusals(arguments[1], session, srs, path[0]);
    /* Handles are closed in any order. */
    spillproof_session_close(session);
    EXPECT(SPILLPROOF_OK, spillproof_srs_inspect(srs, &info));
    spillproof_srs_close(srs);
    spillproof_srs_close(0);
    puts("all calls did as expected");
    return 0;
}
