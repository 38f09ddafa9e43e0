//! Proofs and checks.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use midnight_base_crypto::data_provider::{FetchMode, MidnightDataProvider, OutputMode, BASE_URL};
use midnight_base_crypto::signatures::Signature;
use midnight_ledger::dust::DustResolver;
use midnight_ledger::prove::Resolver;
use midnight_ledger::structure::{
    Intent, ProofMarker, ProofPreimageMarker, ProofPreimageVersioned, StandardTransaction, Transaction,
};
use midnight_ledger::test_utilities::ProofServerProvider;
use midnight_serialize::{tagged_deserialize, tagged_serialize};
use midnight_storage::db::InMemoryDB;
use midnight_transient_crypto::commitment::PedersenRandomness;
use midnight_transient_crypto::curve::Fr;
use midnight_transient_crypto::proofs::{
    KeyLocation, ProvingKeyMaterial, ProvingProvider as _, WrappedIr, Zkir as _,
};
use midnight_zswap::prove::ZswapResolver;

use super::circuits::{self, Circuit};
use super::harness::Server;

/// What the ledger's client resolves keys with: those of one circuit.
fn resolver(circuit: &'static Circuit) -> Resolver {
    let files = MidnightDataProvider {
        fetch_mode: FetchMode::Synchronous,
        base_url: BASE_URL.clone(),
        output_mode: OutputMode::Log,
        expected_data: Vec::new(),
        dir: circuits::params().to_owned(),
    };
    let external = Box::new(
        |_location| -> std::pin::Pin<Box<dyn Future<Output = _> + Send + Sync>> {
            Box::pin(std::future::ready(Ok(Some(circuit.material.clone()))))
        },
    );
    Resolver::new(ZswapResolver(files.clone()), DustResolver(files), external)
}

#[tokio::test]
async fn the_ledgers_own_client_gets_proofs_that_verify() {
    let server = Server::start(&["--memory", "64MiB"]);
    for circuit in [circuits::small(), circuits::middle(), circuits::large()] {
        let resolver = resolver(circuit);
        let client = ProofServerProvider {
            base_url: server.url(),
            resolver: &resolver,
        };
        let input = Fr::from(1234);
        let preimage = circuit.preimage(input, 7.into(), "mine");
        let skips = client.check(&preimage).await.unwrap();
        assert_eq!(skips, circuit.ir.check(&preimage).unwrap());
        let proof = client.clone().prove(&preimage, None).await.unwrap();
        assert!(circuit.verifies(&proof, input, 7.into()), "k = {}", circuit.k);
        assert!(!circuit.verifies(&proof, input, 8.into()));
        let proof = client.prove(&preimage, Some(8.into())).await.unwrap();
        assert!(circuit.verifies(&proof, input, 8.into()), "k = {}", circuit.k);
        let k = server.ask("POST", "/k", &circuits::tagged(&circuit.ir));
        assert_eq!((k.status, k.body), (200, circuit.k.to_string().into_bytes()));
    }
    let ready = server.wait_until_idle();
    assert_eq!(ready["keys"]["held"], 3);
    assert!(ready["budget"]["peakBytes"].as_u64() <= ready["budget"]["limitBytes"].as_u64());
}

#[test]
fn twenty_requests_at_once_are_answered_within_one_budget() {
    let server = Server::start(&["--memory", "64MiB", "--num-workers", "4"]);
    let all = [
        circuits::small(),
        circuits::middle(),
        circuits::large(),
        circuits::small(),
    ];
    std::thread::scope(|scope| {
        for number in 0..20 {
            let server = &server;
            scope.spawn(move || {
                let circuit = all[number % 4];
                let input = Fr::from(number as u64 + 100);
                let proof = server.ask("POST", "/prove", &circuit.request(input)).proof();
                assert!(circuit.verifies(&proof, input, 7.into()), "request {number}");
            });
        }
    });
    let ready = server.wait_until_idle();
    assert!(ready["budget"]["peakBytes"].as_u64() <= Some(64 << 20), "{ready}");
}

#[test]
fn keys_beyond_the_bound_are_read_again() {
    let server = Server::start(&["--memory", "64MiB", "--keys", "1"]);
    for circuit in [circuits::small(), circuits::middle(), circuits::small()] {
        let proof = server.ask("POST", "/prove", &circuit.request(5.into())).proof();
        assert!(circuit.verifies(&proof, 5.into(), 7.into()));
        assert_eq!(server.ready()["keys"]["held"], 1);
    }
}

#[test]
fn a_budget_that_is_too_small_is_named() {
    let server = Server::start(&["--memory", "3MiB"]);
    let answer = server.ask("POST", "/prove", &circuits::large().request(5.into()));
    // The body, or the proof.
    assert!([413, 503].contains(&answer.status), "{answer:?}");
    assert!(
        answer.json()["message"].as_str().unwrap().contains("budget"),
        "{}",
        answer.json()
    );
}

#[test]
fn a_transaction_is_proved_whole() {
    type Unproven = Transaction<Signature, ProofPreimageMarker, PedersenRandomness, InMemoryDB>;
    type Proven = Transaction<Signature, ProofMarker, PedersenRandomness, InMemoryDB>;
    let server = Server::start(&["--memory", "64MiB"]);
    let intents = midnight_storage::storage::HashMap::<
        u16,
        Intent<Signature, ProofPreimageMarker, PedersenRandomness, InMemoryDB>,
        InMemoryDB,
    >::new();
    let transaction: Unproven = Transaction::Standard(StandardTransaction::new(
        "here",
        intents,
        None,
        Default::default(),
    ));
    let keys = HashMap::<KeyLocation, ProvingKeyMaterial>::new();
    let mut body = Vec::new();
    tagged_serialize(&(transaction, keys), &mut body).unwrap();
    let answer = server.ask("POST", "/prove-tx", &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let proven: Proven = tagged_deserialize(&mut &answer.body[..]).unwrap();
    let Transaction::Standard(proven) = proven else {
        panic!("another transaction");
    };
    assert_eq!(proven.network_id, "here");
}

#[test]
fn checks_take_a_circuit_of_the_request() {
    let server = Server::start(&["--memory", "64MiB"]);
    let circuit = circuits::small();
    let preimage = circuit.preimage(5.into(), 7.into(), "mine");
    let versioned = ProofPreimageVersioned::V2(Arc::new(preimage));
    let body = circuits::tagged(&(
        versioned.clone(),
        Some(WrappedIr(circuit.material.ir_source.clone())),
    ));
    let answer = server.ask("POST", "/check", &body);
    let skips: Vec<Option<u64>> = tagged_deserialize(&mut &answer.body[..]).unwrap();
    assert_eq!(skips, [None]);
    let without = circuits::tagged(&(versioned, None::<WrappedIr>));
    let answer = server.ask("POST", "/check", &without);
    assert_eq!((answer.status, answer.word().as_str()), (400, "unknown-key"));
}
