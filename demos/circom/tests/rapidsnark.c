/* Calls each function of the library as a program over rapidsnark does. Arguments: key, witness, verification key, a witness of another length. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spillproof_groth16.h"

static char message[256];

#define EXPECT(expected, call)                                                                     \
    do {                                                                                           \
        int code = (call);                                                                         \
        if (code != (expected)) {                                                                  \
            printf("line %d: %d instead of %d: %s\n", __LINE__, code, (expected), message);        \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s\n", __LINE__, #condition);                                         \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static char *contents(const char *name, unsigned long long *size) {
    FILE *file = fopen(name, "rb");
    if (!file) exit(2);
    fseek(file, 0, SEEK_END);
    *size = (unsigned long long)ftell(file);
    rewind(file);
    char *bytes = malloc(*size + 1);
    if (fread(bytes, 1, *size, file) != *size) exit(2);
    bytes[*size] = 0;
    fclose(file);
    return bytes;
}

int main(int count, char **arguments) {
    CHECK(count == 5);
    unsigned long long key_size, witness_size, vkey_size, other_size;
    char *key = contents(arguments[1], &key_size);
    char *witness = contents(arguments[2], &witness_size);
    char *vkey = contents(arguments[3], &vkey_size);
    char *other = contents(arguments[4], &other_size);

    unsigned long long proof_max = 0, public_max = 0, public_max_of_file = 0;
    groth16_proof_size(&proof_max);
    EXPECT(PROVER_OK, groth16_public_size_for_zkey_buf(key, key_size, &public_max, message, sizeof message));
    EXPECT(PROVER_OK, groth16_public_size_for_zkey_file(arguments[1], &public_max_of_file, message, sizeof message));
    CHECK(public_max == public_max_of_file && public_max > 0);
    char *proof = malloc(proof_max), *public_signals = malloc(public_max);

    /* One call, from memory and from a file. */
    for (int from_file = 0; from_file < 2; from_file++) {
        unsigned long long proof_size = proof_max, public_size = public_max;
        if (from_file) {
            EXPECT(PROVER_OK, groth16_prover_zkey_file(arguments[1], witness, witness_size, proof, &proof_size, public_signals,
                                                       &public_size, message, sizeof message));
        } else {
            EXPECT(PROVER_OK, groth16_prover(key, key_size, witness, witness_size, proof, &proof_size, public_signals,
                                             &public_size, message, sizeof message));
        }
        CHECK(strlen(proof) == proof_size && strlen(public_signals) == public_size);
        EXPECT(VERIFIER_VALID_PROOF, groth16_verify(proof, public_signals, vkey, message, sizeof message));
    }
    EXPECT(VERIFIER_INVALID_PROOF, groth16_verify(proof, "[\"1\"]", vkey, message, sizeof message));
    EXPECT(VERIFIER_ERROR, groth16_verify("{}", public_signals, vkey, message, sizeof message));
    CHECK(strstr(message, "proof"));
    EXPECT(VERIFIER_ERROR, groth16_verify(proof, "[\"1\", \"2\"]", vkey, message, sizeof message));

    /* A prover for several proofs. */
    void *prover = 0;
    EXPECT(PROVER_OK, groth16_prover_create_zkey_file(&prover, arguments[1], message, sizeof message));
    for (int turn = 0; turn < 2; turn++) {
        /* One buffer is too short, then the other, then both: no proof is made, so the witness is not looked at. */
        unsigned long long proof_size = 10, public_size = public_max;
        EXPECT(PROVER_ERROR_SHORT_BUFFER, groth16_prover_prove(prover, key, key_size, proof, &proof_size, public_signals,
                                                               &public_size, message, sizeof message));
        unsigned long long needed = proof_size;
        CHECK(needed > 500 && needed <= proof_max && public_size == public_max);
        public_size = public_max - 1;
        EXPECT(PROVER_ERROR_SHORT_BUFFER, groth16_prover_prove(prover, key, key_size, proof, &proof_size, public_signals,
                                                               &public_size, message, sizeof message));
        CHECK(proof_size == needed && public_size == public_max);
        proof_size = public_size = 0;
        EXPECT(PROVER_ERROR_SHORT_BUFFER, groth16_prover_zkey_file(arguments[1], key, key_size, proof, &proof_size, public_signals,
                                                                   &public_size, message, sizeof message));
        CHECK(proof_size == needed && public_size == public_max);
        /* A proof has other numbers each time, and a few digits more or less: buffers of just these sizes do. */
        char *exact_proof = malloc(proof_size), *exact_signals = malloc(public_size);
        for (int again = 0; again < 5; again++) {
            proof_size = needed;
            public_size = public_max;
            EXPECT(PROVER_OK, groth16_prover_prove(prover, witness, witness_size, exact_proof, &proof_size, exact_signals,
                                                   &public_size, message, sizeof message));
            CHECK(strlen(exact_proof) == proof_size && proof_size < needed && strlen(exact_signals) == public_size);
        }
        free(exact_proof), free(exact_signals);
        proof_size = proof_max;
        public_size = public_max;
        EXPECT(PROVER_OK, groth16_prover_prove(prover, witness, witness_size, proof, &proof_size, public_signals, &public_size,
                                               message, sizeof message));
        EXPECT(VERIFIER_VALID_PROOF, groth16_verify(proof, public_signals, vkey, message, sizeof message));
    }
    unsigned long long proof_size = proof_max, public_size = public_max;
    EXPECT(PROVER_INVALID_WITNESS_LENGTH, groth16_prover_prove(prover, other, other_size, proof, &proof_size, public_signals,
                                                               &public_size, message, sizeof message));
    CHECK(strstr(message, "values of a witness"));
    EXPECT(PROVER_ERROR, groth16_prover_prove(prover, key, key_size, proof, &proof_size, public_signals, &public_size, message,
                                              sizeof message));
    EXPECT(PROVER_ERROR, groth16_prover_prove(0, witness, witness_size, proof, &proof_size, public_signals, &public_size,
                                              message, sizeof message));
    EXPECT(PROVER_ERROR, groth16_prover_prove(prover, witness, witness_size, 0, &proof_size, public_signals, &public_size,
                                              message, sizeof message));
    groth16_prover_destroy(prover);
    groth16_prover_destroy(0);

    /* Keys that are none; messages are cut to their buffer. */
    char little[8] = "XXXXXXX";
    EXPECT(PROVER_ERROR, groth16_prover_create(&prover, witness, witness_size, message, sizeof message));
    EXPECT(PROVER_ERROR, groth16_prover_create(&prover, key, key_size / 2, little, sizeof little));
    CHECK(strlen(little) == sizeof little - 1);
    EXPECT(PROVER_ERROR, groth16_prover_create(&prover, 0, 0, 0, 0));
    EXPECT(PROVER_ERROR, groth16_prover_create_zkey_file(&prover, "none.zkey", message, sizeof message));
    CHECK(strstr(message, "none.zkey"));

    free(key), free(witness), free(vkey), free(other), free(proof), free(public_signals);
    puts("all calls did as expected");
    return 0;
}
