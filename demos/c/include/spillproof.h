/* spillproof for C: commitments, openings, sums and transforms over BN254 within a budget of bytes, which is all that the library holds of
 * values and points; the rest is on disk. Results are, bit for bit, those of in-memory libraries.
 *
 * Bytes.  A scalar has 32: its canonical value, below the modulus of the scalar field, little-endian. A point of G1 has 64: x, then y, each the
 * canonical value of a coordinate, little-endian, in 32 bytes; infinity is 64 zeros. A point of G2 has 128: x.c0, x.c1, y.c0, y.c1. None is in
 * Montgomery form. Buffers need no alignment. Scalars that are not below the modulus, and points off the curve, are refused.
 *
 * Results.  A function that returns an int returns SPILLPROOF_OK, or the kind of what went wrong; then spillproof_error_message() is for people.
 * Messages are kept for each thread. After an error nothing was handed out; buffers may be written in part.
 *
 * Handles.  A session has a budget, a folder for scratch files and threads. What is opened or begun in it is charged to its budget, and may outlive
 * it: handles are closed in any order. Scratch files have no names: they go with their handle, or with the process. All functions may be called
 * from several threads at a time, with the same handles, but a handle that is being closed; work of one session is done in turns. A process that was
 * forked has to open a session of its own.
 *
 * Columns.  A column is scalars on disk: it is begun for a number of them, filled by pushes from its start on, and used when it is full. So a
 * polynomial may be larger than the memory. */

#ifndef SPILLPROOF_H
#define SPILLPROOF_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPILLPROOF_OK 0
#define SPILLPROOF_INVALID 1 /* a mistake in the call: a value, a length, a null pointer, a column that is not full */
#define SPILLPROOF_BUDGET 2  /* the budget is too small: spillproof_error_needed_bytes() would do */
#define SPILLPROOF_FILE 3    /* the system refused an operation on a file, or the disk is full */
#define SPILLPROOF_FORMAT 4  /* a file is not what it should be */
#define SPILLPROOF_DAMAGED 5 /* the disk gave back other bytes than were written */
#define SPILLPROOF_SYSTEM 6  /* the system does not give what is needed: memory, threads, a system call */
#define SPILLPROOF_INTERNAL 7 /* a defect of the library */

#define SPILLPROOF_SCALAR_BYTES 32
#define SPILLPROOF_POINT_BYTES 64
#define SPILLPROOF_G2_BYTES 128

/* A polynomial by its coefficients, the lowest first; or by its values on the domain of SPILLPROOF_HALO2. */
#define SPILLPROOF_MONOMIAL 0
#define SPILLPROOF_LAGRANGE 1

/* Whose primitive root of unity of order 2^28 a domain comes from: from 2^6 values on they differ. The Lagrange form of an SRS is for halo2's. */
#define SPILLPROOF_HALO2 0
#define SPILLPROOF_ARKWORKS 1

#define SPILLPROOF_JOB_COMMIT 0
#define SPILLPROOF_JOB_OPEN 1
#define SPILLPROOF_JOB_MSM 2
#define SPILLPROOF_JOB_NTT 3

typedef struct spillproof_session spillproof_session;
typedef struct spillproof_srs spillproof_srs;
typedef struct spillproof_column spillproof_column;
typedef struct spillproof_points spillproof_points;

/* The domain of a transform: the coset shift * <root> of 2^log_n points. The subgroup itself has the shift 1: {log_n, roots, is_inverse, {1}}. */
typedef struct spillproof_domain {
    uint32_t log_n;
    uint32_t roots;      /* SPILLPROOF_HALO2 or SPILLPROOF_ARKWORKS */
    uint32_t is_inverse; /* 0: coefficients to values, else values to coefficients */
    uint8_t shift[SPILLPROOF_SCALAR_BYTES];
} spillproof_domain;

typedef struct spillproof_srs_info {
    uint32_t k; /* 2^k points in each form */
    uint32_t has_monomial;
    uint32_t has_lagrange;
    uint8_t root[32]; /* names the content of the file */
    uint8_t g2[SPILLPROOF_G2_BYTES];
    uint8_t s_g2[SPILLPROOF_G2_BYTES];
} spillproof_srs_info;

/* What work over columns will take. Seconds are a guess for two cores and an NVMe disk. */
typedef struct spillproof_plan {
    uint64_t budget_bytes;
    uint64_t smallest_budget_bytes; /* the smallest budget that works */
    uint64_t peak_bytes;            /* the most that is held of the budget */
    uint64_t disk_bytes;            /* the most that files take, with the SRS or the points */
    uint64_t bytes_read;
    uint64_t bytes_written;
    double seconds;
} spillproof_plan;

const char *spillproof_version(void);

/* What this thread's last call that failed has to say, until the thread's next call that fails. */
const char *spillproof_error_message(void);
/* With SPILLPROOF_BUDGET: the smallest budget with which that step would have gone on; else 0. */
uint64_t spillproof_error_needed_bytes(void);

/* memory_bytes 0: most of the memory that is there. dir null: the folder of SPILLPROOF_DIR, or the system's one for temporary files; best is a
 * folder on NVMe, and a tmpfs is memory. threads 0: one for each core; 1024 at most. */
int spillproof_session_open(uint64_t memory_bytes, const char *dir, uint32_t threads, spillproof_session **session);
void spillproof_session_close(spillproof_session *session);

/* Files of structured reference strings. An SRS of a known secret is INSECURE, for tests. An import takes a ParamsKZG file of halo2, and checks
 * each point. Verification reads all of an SRS file, and checks that its parts belong together. */
int spillproof_srs_generate(const spillproof_session *session, const char *srs_path, uint32_t k, const uint8_t *secret);
int spillproof_srs_import(const spillproof_session *session, const char *params_path, const char *srs_path);
int spillproof_srs_verify(const spillproof_session *session, const char *srs_path);
int spillproof_srs_open(const spillproof_session *session, const char *srs_path, spillproof_srs **srs);
int spillproof_srs_inspect(const spillproof_srs *srs, spillproof_srs_info *info);
void spillproof_srs_close(spillproof_srs *srs);

/* Scalars on disk. A push with a scalar that is not below the modulus adds nothing. */
int spillproof_column_begin(const spillproof_session *session, uint64_t count, spillproof_column **column);
int spillproof_column_push(const spillproof_column *column, const uint8_t *values, uint64_t count);
int spillproof_column_read(const spillproof_column *column, uint64_t start, uint64_t count, uint8_t *values);
void spillproof_column_close(spillproof_column *column);

/* Points on disk, for sums. A push with a point off the curve leaves them useless. */
int spillproof_points_begin(const spillproof_session *session, uint64_t count, spillproof_points **points);
int spillproof_points_push(const spillproof_points *points, const uint8_t *values, uint64_t count);
int spillproof_points_msm(const spillproof_points *points, const spillproof_column *column, uint8_t *sum);
void spillproof_points_close(spillproof_points *points);

/* KZG. A commitment to a polynomial in memory reads it where it is; an opening copies it to the disk. Several columns share passes over the SRS:
 * commitments has room for count points. A check of an opening is one pairing equation: is_right becomes 1 or 0. */
int spillproof_commit(const spillproof_srs *srs, uint32_t basis_number, const uint8_t *values, uint64_t count, uint8_t *commitment);
int spillproof_commit_columns(const spillproof_srs *srs, uint32_t basis_number, const spillproof_column *const *columns, uint32_t count,
                              uint8_t *commitments);
int spillproof_open(const spillproof_srs *srs, const uint8_t *coefficients, uint64_t count, const uint8_t *point, uint8_t *value,
                    uint8_t *proof);
int spillproof_open_column(const spillproof_srs *srs, const spillproof_column *column, const uint8_t *point, uint8_t *value,
                           uint8_t *proof);
int spillproof_check_opening(const spillproof_srs *srs, const uint8_t *commitment, const uint8_t *point, const uint8_t *value,
                             const uint8_t *proof, uint32_t *is_right);

/* The sum of values[i] * points[i]. The points are copied to the disk. */
int spillproof_msm(const spillproof_session *session, const uint8_t *points, const uint8_t *values, uint64_t count, uint8_t *sum);

/* Transforms. Fewer values than the domain has count as padded with zeros; out has room for 2^log_n scalars, and may be values. */
int spillproof_ntt(const spillproof_session *session, const spillproof_domain *domain, const uint8_t *values, uint64_t count, uint8_t *out);
int spillproof_column_ntt(const spillproof_column *column, const spillproof_domain *domain, spillproof_column **transformed);

/* What a job over count scalars will take. A budget that is too small is SPILLPROOF_BUDGET, with the smallest one that works. */
int spillproof_plan_job(uint32_t job, uint64_t count, uint64_t memory_bytes, uint32_t threads, spillproof_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
