/// <reference types="node" />

/** A number, as programs have it: a text of decimal or, after 0x, hexadecimal digits, a bigint, or a safe integer. */
export type NumberLike = string | bigint | number;

/** A file: its path, its bytes, or an object that says which of both. */
export type FileLike = string | Uint8Array | { type: 'mem'; data: Uint8Array } | { type: 'file'; fileName: string };

/** A value of an input signal: a number, or an array, or the fields of a bus. */
export type SignalValue = NumberLike | readonly SignalValue[] | { readonly [field: string]: SignalValue };

/** Values of the input signals, by name. */
export interface CircuitSignals {
  readonly [signal: string]: SignalValue;
}

/** A proof, in snarkjs' form. */
export interface Groth16Proof {
  pi_a: string[];
  pi_b: string[][];
  pi_c: string[];
  protocol: string;
  curve: string;
}

/** A proof to be verified. */
export interface Groth16ProofLike {
  pi_a: readonly NumberLike[];
  pi_b: readonly (readonly NumberLike[])[];
  pi_c: readonly NumberLike[];
}

/** Public signals, as decimal texts. */
export type PublicSignals = string[];

/** A verification key, in snarkjs' form. */
export interface VerificationKey {
  protocol: string;
  curve: string;
  nPublic: number;
  vk_alpha_1: string[];
  vk_beta_2: string[][];
  vk_gamma_2: string[][];
  vk_delta_2: string[][];
  vk_alphabeta_12: string[][][];
  IC: string[][];
}

/** A verification key to be used. */
export interface VerificationKeyLike {
  protocol?: string;
  curve?: string;
  vk_alpha_1: readonly NumberLike[];
  vk_beta_2: readonly (readonly NumberLike[])[];
  vk_gamma_2: readonly (readonly NumberLike[])[];
  vk_delta_2: readonly (readonly NumberLike[])[];
  IC: readonly (readonly NumberLike[])[];
}

/** A proof, and the public signals that it is for. */
export interface ProofResult {
  proof: Groth16Proof;
  publicSignals: PublicSignals;
}

/** What is told of the work's steps and of a verification's result. */
export interface Logger {
  debug?(message: string): void;
  info?(message: string): void;
  warn?(message: string): void;
  error?(message: string): void;
}

/** A step of the work begins. */
export interface Progress {
  /** Such as `constraints`, `quotient`, `sum over H`. */
  step: string;
}

/** Where and how a call works. Calls with the same memory, dir and threads share one budget. */
export interface Options {
  /** The budget: a number of bytes, or a size such as `128MiB`; else that of SPILLPROOF_MEMORY, else `auto`. */
  memory?: number | bigint | string;
  /** The folder of scratch files, on a disk; else that of SPILLPROOF_DIR, else the system's for temporary files. */
  dir?: string;
  /** Compute threads; one for each core without it. */
  threads?: number;
  /** Ends the call, when it is aborted. */
  signal?: AbortSignal;
  /** Is told of each step. */
  onProgress?: (progress: Progress) => void;
  /** An option of snarkjs, without effect here. */
  singleThread?: boolean;
}

/** Options of a verification. */
export interface VerifyOptions extends Options {
  /** Takes a key that no one has contributed to: proofs can be forged with it. For tests. */
  allowInsecure?: boolean;
}

/** Options of a witness' calculation. */
export interface WitnessOptions {
  /** Lets programs of circom 0.5 check each constraint. */
  sanityCheck?: boolean;
  /** Memory of programs of circom 0.5, in pages of 64 KiB. */
  memorySize?: number;
  [option: string]: unknown;
}

/** Codes of {@link SpillproofError}; a mistake in an argument is a `TypeError` with the code `SPILLPROOF_ARGUMENT`. */
export type ErrorCode =
  | 'SPILLPROOF_ARGUMENT'
  | 'SPILLPROOF_DAMAGED'
  | 'SPILLPROOF_DISK_FULL'
  | 'SPILLPROOF_FILE'
  | 'SPILLPROOF_FORMAT'
  | 'SPILLPROOF_INPUT'
  | 'SPILLPROOF_INSECURE_KEY'
  | 'SPILLPROOF_INTERNAL'
  | 'SPILLPROOF_OVER_BUDGET'
  | 'SPILLPROOF_PLATFORM'
  | 'SPILLPROOF_SETTING'
  | 'SPILLPROOF_STOPPED'
  | 'SPILLPROOF_SYSTEM'
  | 'SPILLPROOF_WITNESS';

/** An error of this package. */
export class SpillproofError extends Error {
  constructor(code: ErrorCode, message: string, options?: { cause?: unknown });
  readonly code: ErrorCode;
  /** Bytes that were asked of the budget, or of the disk. */
  readonly bytesAsked?: number;
  /** Bytes of the budget that were held already. */
  readonly bytesHeld?: number;
  /** The budget, or what is free on the disk. */
  readonly bytesLimit?: number;
  /** The smallest budget, or room on the disk, that would do, as far as is known. */
  readonly bytesNeeded?: number;
}

export const groth16: {
  /** A proof, of a key (`.zkey`) and a witness (`.wtns`). It is verified before it is returned. */
  prove(
    zkeyFileName: FileLike,
    witnessFileName: FileLike,
    logger?: Logger | null,
    options?: Options,
  ): Promise<ProofResult>;
  /** A proof, of input signals for the program (`.wasm`) that circom makes of a circuit. */
  fullProve(
    input: CircuitSignals,
    wasmFile: FileLike,
    zkeyFileName: FileLike,
    logger?: Logger | null,
    wtnsCalcOptions?: WitnessOptions | null,
    proverOptions?: Options,
  ): Promise<ProofResult>;
  /** Whether a proof is valid for public signals. */
  verify(
    vkVerifier: VerificationKeyLike,
    publicSignals: readonly NumberLike[],
    proof: Groth16ProofLike,
    logger?: Logger | null,
    options?: VerifyOptions,
  ): Promise<boolean>;
  /** Arguments for the `verifyProof` of a verifier in Solidity, as a text. */
  exportSolidityCallData(proof: Groth16ProofLike, pub: readonly NumberLike[]): Promise<string>;
};

export const zKey: {
  /** The verification key of a proving key. */
  exportVerificationKey(zkeyName: FileLike, logger?: Logger | null, options?: Options): Promise<VerificationKey>;
};
