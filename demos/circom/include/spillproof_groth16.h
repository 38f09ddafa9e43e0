/* Groth16 proofs over circom's and snarkjs' files, within the budget of SPILLPROOF_MEMORY and on the disk of SPILLPROOF_DIR.
 *
 * The functions have the names, arguments and results of iden3's rapidsnark: a program that calls these needs a new link, and no change.
 * Buffers of JSON get a zero at their end. A size is the buffer's before a call and the text's after it; with *_ERROR_SHORT_BUFFER it is the size
 * that will do, with the zero, for every proof with that key; no proof is made then. Keys are .zkey files, or containers that `spillproof groth16 import` made of them. */

#ifndef SPILLPROOF_GROTH16_H
#define SPILLPROOF_GROTH16_H

#ifdef __cplusplus
extern "C" {
#endif

/* Results of the functions but groth16_verify. */
#define PROVER_OK 0x0
#define PROVER_ERROR 0x1
#define PROVER_ERROR_SHORT_BUFFER 0x2
#define PROVER_INVALID_WITNESS_LENGTH 0x3

/* Results of groth16_verify. */
#define VERIFIER_VALID_PROOF 0x0
#define VERIFIER_INVALID_PROOF 0x1
#define VERIFIER_ERROR 0x2

/* The bytes that a proof takes at most. */
void groth16_proof_size(unsigned long long *proof_size);

/* The bytes that a key's public signals take at most. */
int groth16_public_size_for_zkey_buf(const void *zkey_buffer, unsigned long long zkey_size, unsigned long long *public_size,
                                     char *error_msg, unsigned long long error_msg_maxsize);
int groth16_public_size_for_zkey_file(const char *zkey_fname, unsigned long long *public_size, char *error_msg,
                                      unsigned long long error_msg_maxsize);

/* A prover with a key, for several proofs. A key's file has to stay as it is; a key in memory is copied to the disk. */
int groth16_prover_create(void **prover_object, const void *zkey_buffer, unsigned long long zkey_size, char *error_msg,
                          unsigned long long error_msg_maxsize);
int groth16_prover_create_zkey_file(void **prover_object, const char *zkey_file_path, char *error_msg,
                                    unsigned long long error_msg_maxsize);
int groth16_prover_prove(void *prover_object, const void *wtns_buffer, unsigned long long wtns_size, char *proof_buffer,
                         unsigned long long *proof_size, char *public_buffer, unsigned long long *public_size, char *error_msg,
                         unsigned long long error_msg_maxsize);
void groth16_prover_destroy(void *prover_object);

/* One proof. */
int groth16_prover(const void *zkey_buffer, unsigned long long zkey_size, const void *wtns_buffer, unsigned long long wtns_size,
                   char *proof_buffer, unsigned long long *proof_size, char *public_buffer, unsigned long long *public_size,
                   char *error_msg, unsigned long long error_msg_maxsize);
int groth16_prover_zkey_file(const char *zkey_file_path, const void *wtns_buffer, unsigned long long wtns_size, char *proof_buffer,
                             unsigned long long *proof_size, char *public_buffer, unsigned long long *public_size,
                             char *error_msg, unsigned long long error_msg_maxsize);

/* Verifies a proof: three texts in JSON. A key whose gamma and delta are equal, as before the first contribution, is an error: proofs can be
 * forged with it. */
int groth16_verify(const char *proof, const char *inputs, const char *verification_key, char *error_msg,
                   unsigned long long error_msg_maxsize);

#ifdef __cplusplus
}
#endif

#endif
