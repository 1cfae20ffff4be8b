//! The list of a program's parts (SBOM) in the form of CycloneDX 1.6: each crate with its version, licence, digest and
//! what it uses. No time and no serial number: the same sources give the same list.

use anyhow::Result;
use serde_json::{Value, json};

use super::crates::Crate;

/// The list of a program that is made of these crates; the first of them that has its name is the program.
pub(super) fn sbom(program: &str, crates: &[Crate]) -> Result<String> {
    let is_program = |one: &&Crate| one.name == program;
    let components: Vec<Value> = (crates.iter())
        .filter(|one| !is_program(one))
        .map(|one| component(one, "library"))
        .collect();
    let dependencies: Vec<Value> = (crates.iter())
        .map(|one| {
            let used = crates.iter().filter(|other| one.uses.contains(&other.id()));
            json!({"ref": url(one), "dependsOn": used.map(url).collect::<Vec<_>>()})
        })
        .collect();
    let root = crates.iter().find(is_program);
    let list = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": root.map(|one| component(one, "application"))},
        "components": components,
        "dependencies": dependencies,
    });
    Ok(serde_json::to_string_pretty(&list)? + "\n")
}

fn url(one: &Crate) -> String {
    format!("pkg:cargo/{}@{}", one.name, one.version.replace('+', "%2B"))
}

fn component(one: &Crate, kind: &str) -> Value {
    let mut value = json!({
        "type": kind,
        "bom-ref": url(one),
        "name": one.name,
        "version": one.version,
        "purl": url(one),
        // Crates of before 2018 write `MIT/Apache-2.0`.
        "licenses": [{"expression": one.licence.replace('/', " OR ")}],
    });
    if let Some(checksum) = &one.checksum {
        value["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    if let Some(repository) = &one.repository {
        value["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_crates_are_listed_with_what_they_use() {
        let root = crate::repository_root().unwrap();
        let target = "x86_64-unknown-linux-gnu";
        let crates = super::super::crates::crates(&root, "metra-cli", "postgres", target).unwrap();
        let text = sbom("metra-cli", &crates).unwrap();
        let list: Value = serde_json::from_str(&text).unwrap();
        let components = list["components"].as_array().unwrap();
        assert_eq!(components.len() + 1, crates.len());
        assert_eq!(list["metadata"]["component"]["name"], "metra-cli");
        let used = list["dependencies"].as_array().unwrap();
        let metra = used.iter().find(|one| {
            let name = one["ref"].as_str().unwrap();
            name.starts_with("pkg:cargo/metra@")
        });
        let uses = metra.unwrap()["dependsOn"].as_array().unwrap();
        assert!(
            uses.iter()
                .any(|one| one.as_str().unwrap().starts_with("pkg:cargo/faer@"))
        );
        assert!(!text.contains("timestamp"));
    }
}
