//! Runs every check on this repository, so that `cargo test` fails when `cargo xtask tidy` does.

#[test]
fn the_repository_is_tidy() {
    let findings = xtask::tidy(&xtask::repository_root().unwrap()).unwrap();
    let listed: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(
        listed.is_empty(),
        "{} found\n{}",
        listed.len(),
        listed.join("\n")
    );
}
