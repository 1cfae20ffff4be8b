//! What `sslmode` promises, against a server that takes encrypted connections alone. The PostgreSQL of the other
//! tests is built without TLS: `METRA_POSTGRES_TLS` names the programs of one that has it, and `openssl` makes
//! the certificates.

use crate::server::{Server, hand_over};
use crate::tables::{answered, refused, text};
use std::path::Path;
use std::process::Command;

/// A root, and a certificate for `localhost` that it signed.
const CERTIFICATES: &str = r#"
openssl req -new -x509 -days 3 -nodes -subj /CN=root -keyout root.key -out root.pem
openssl req -new -nodes -subj /CN=server -keyout server.key -out server.csr
printf subjectAltName=DNS:localhost > names
openssl x509 -req -in server.csr -CA root.pem -CAkey root.key -CAcreateserial -days 3 -extfile names -out server.crt
chmod 600 server.key
"#;

#[test]
#[ignore = "slow: starts PostgreSQL"]
fn encryption_asks_as_much_as_it_says() {
    let what = "the bin folder of a PostgreSQL with TLS";
    let Some(programs) = metra_testing::variable("METRA_POSTGRES_TLS", what) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root.pem");
    let prepare = |data: &Path| {
        let made = Command::new("sh")
            .args(["-ec", CERTIFICATES])
            .current_dir(data)
            .output();
        let made = made.unwrap();
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        hand_over(&data.join("server.key"));
        hand_over(&data.join("server.crt"));
        std::fs::copy(data.join("root.pem"), &root).unwrap();
    };
    let rules = "hostssl all all 127.0.0.1/32 trust\n";
    let server = Server::of(&programs, rules, &["-c", "ssl=on"], prepare);
    let url = |host: &str, mode: &str| {
        let url = server.url().replace("127.0.0.1", host);
        format!("{url}&{mode}")
    };
    let known = format!("sslrootcert={}", text(&root));
    // Encrypted, whoever answers; and not encrypted, which this server does not take.
    for mode in ["application_name=x", "sslmode=prefer", "sslmode=require"] {
        assert_eq!(
            answered(&["models", &url("127.0.0.1", mode)]),
            serde_json::json!([]),
            "{mode}"
        );
    }
    let said = refused(&["models", &url("127.0.0.1", "sslmode=disable")]);
    assert!(said.contains("no encryption"), "{said}");
    // Whom nobody vouches for.
    for mode in ["verify-ca", "verify-full"] {
        let said = refused(&["models", &url("localhost", &format!("sslmode={mode}"))]);
        assert!(
            said.contains("UnknownIssuer") || said.contains("no root certificates"),
            "{said}"
        );
    }
    // Whom the root vouches for, under the right name and under another.
    answered(&[
        "models",
        &url("localhost", &format!("sslmode=verify-full&{known}")),
    ]);
    answered(&[
        "models",
        &url("127.0.0.1", &format!("sslmode=verify-ca&{known}")),
    ]);
    let said = refused(&[
        "models",
        &url("127.0.0.1", &format!("sslmode=verify-full&{known}")),
    ]);
    assert!(said.contains("not valid for name"), "{said}");
    let said = refused(&[
        "models",
        &url("localhost", "sslmode=require&sslrootcert=/nowhere.pem"),
    ]);
    assert!(said.contains("/nowhere.pem"), "{said}");
}
