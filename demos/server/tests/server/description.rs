//! The description is that of the routes, and the reverse.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use spillproof_server::{CODES, OPENAPI, ROUTES};

use crate::client::Request;
use crate::fixture::Running;

/// The codes of a status, by the description of an answer.
fn codes(description: &Value, status: &str) -> BTreeSet<String> {
    let schema = &description["responses"][status]["content"]["application/problem+json"]["schema"];
    let codes = schema["allOf"][1]["properties"]["code"]["enum"].as_array();
    let codes = codes.into_iter().flatten().filter_map(Value::as_str);
    codes.map(str::to_owned).collect()
}

#[test]
fn routes_and_their_description() {
    let document: Value = serde_json::from_str(OPENAPI).expect("JSON");
    assert_eq!(document["openapi"], "3.1.0");
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for method in item.as_object().expect("methods").keys() {
            described.insert((method.to_uppercase(), path.clone()));
        }
    }
    let routes: BTreeSet<_> = ROUTES
        .iter()
        .map(|route| (route.method.to_owned(), route.path.to_owned()))
        .collect();
    assert_eq!(described, routes);
    for route in ROUTES {
        let description = &document["paths"][route.path][route.method.to_lowercase()];
        let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for status in route.answers {
            expected.entry(status.to_string()).or_default();
        }
        for code in route.codes() {
            let of_status = expected.entry(code.status().as_u16().to_string()).or_default();
            of_status.insert(code.text().to_owned());
        }
        let responses = description["responses"].as_object().expect("answers");
        let found: BTreeMap<_, _> = responses
            .keys()
            .map(|status| (status.clone(), codes(description, status)))
            .collect();
        assert_eq!(found, expected, "{} {}", route.method, route.path);
        let security = description["security"].as_array().expect("security");
        assert_eq!(security.is_empty(), !route.has_token, "{}", route.path);
        for part in route
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        {
            let parameters = description["parameters"].as_array().expect("parameters");
            assert!(
                parameters
                    .iter()
                    .any(|given| given["name"] == part && given["in"] == "path")
            );
        }
    }
    let known: BTreeSet<_> = CODES.iter().map(|code| code.text()).collect();
    assert_eq!(known.len(), CODES.len());
    let schema = document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"].as_array();
    let described: BTreeSet<_> = schema.into_iter().flatten().filter_map(Value::as_str).collect();
    assert_eq!(described, known);
    assert_references(&document, &document);
}

/// Every reference leads to something.
fn assert_references(value: &Value, document: &Value) {
    match value {
        Value::Object(fields) => {
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                let place = reference.strip_prefix('#').expect("a place in the document");
                assert!(document.pointer(place).is_some(), "{reference}");
            }
            fields
                .values()
                .for_each(|value| assert_references(value, document));
        }
        Value::Array(values) => values.iter().for_each(|value| assert_references(value, document)),
        _ => {}
    }
}

/// Each route is there, also by HEAD where it is GET; no other method is.
#[test]
fn routes_are_there() {
    let server = Running::start();
    for route in ROUTES {
        let path = route.path.replace("{name}", "small").replace("{id}", "0");
        let answer = Request {
            method: route.method,
            ..Request::get(&path)
        };
        let answer = answer.send(server.address);
        assert_ne!(answer.status, 405, "{route:?}");
        let is_known = |status: u16| {
            route.answers.contains(&status) || route.codes().any(|code| code.status().as_u16() == status)
        };
        assert!(is_known(answer.status), "{route:?}: {answer:?}");
        let other = Request {
            method: "PATCH",
            ..Request::get(&path)
        };
        assert_eq!(other.send(server.address).code(), "method_not_allowed", "{path}");
    }
    assert_eq!(server.get("/openapi.json").body, OPENAPI.as_bytes());
    let head = Request {
        method: "HEAD",
        ..Request::get("/v1/keys")
    };
    let head = head.send(server.address);
    assert_eq!((head.status, head.body.len()), (200, 0));
    server.end();
}
