//! Are we of one build? Compared when an executor joins and when a driver connects, because Ballista
//! finds out late and vaguely: an executor without an operator fails with "task could not be
//! prepared".
//!
//! A scheduler tells its identity on its page. An executor carries the short form of its own in its
//! id, which Ballista sends with every registration and heartbeat: so it is known again after the
//! scheduler was restarted, without a message of our own.

use crate::{Error, Result};
use ballista_core::BALLISTA_VERSION;
use serde::{Deserialize, Serialize};

/// What must be the same in all programs of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Version of Metra.
    pub metra: String,
    /// Version of Ballista.
    pub ballista: String,
    /// Names of the passes it can run, sorted.
    pub passes: Vec<String>,
}

impl Identity {
    /// The identity of this build.
    pub fn here() -> Self {
        let names = metra::internal::PASSES
            .iter()
            .map(metra::internal::Pass::name);
        let mut passes: Vec<String> = names.map(str::to_owned).collect();
        passes.sort_unstable();
        Identity {
            metra: env!("CARGO_PKG_VERSION").to_owned(),
            ballista: BALLISTA_VERSION.to_owned(),
            passes,
        }
    }

    /// The identity in one word: versions and a digest of the passes.
    pub fn short(&self) -> String {
        let passes = blake3::hash(self.passes.join("\n").as_bytes()).to_hex();
        format!("{}+{}+{}", self.metra, self.ballista, &passes[..8])
    }

    /// The id of an executor of this build.
    pub(crate) fn executor_id(&self) -> String {
        format!("metra+{}+{}", self.short(), uuid::Uuid::new_v4())
    }

    /// Check another program's identity against this one.
    pub fn check(&self, peer: &str, other: &Identity) -> Result<()> {
        let differences = self.differences(other);
        if differences.is_empty() {
            return Ok(());
        }
        Err(Error::Mismatch {
            peer: peer.to_owned(),
            differences,
        })
    }

    /// Check an executor by its id, since that is all the scheduler knows of it.
    pub fn check_executor(&self, peer: &str, id: &str) -> Result<()> {
        let differences = match of_executor(id) {
            Some(short) if short == self.short() => return Ok(()),
            Some(short) => vec![format!(
                "it runs {}, this is {}",
                in_words(short),
                in_words(&self.short())
            )],
            None => vec![format!(
                "it was not started by `metra cluster executor` (its id is {id:?})"
            )],
        };
        Err(Error::Mismatch {
            peer: peer.to_owned(),
            differences,
        })
    }

    fn differences(&self, other: &Identity) -> Vec<String> {
        let mut found = Vec::new();
        if self.metra != other.metra {
            let (here, there) = (&self.metra, &other.metra);
            found.push(format!("it runs metra {there}, this is metra {here}"));
        }
        if self.ballista != other.ballista {
            let (here, there) = (&self.ballista, &other.ballista);
            found.push(format!(
                "it runs Ballista {there}, this has Ballista {here}"
            ));
        }
        let lacking = |one: &Identity, two: &Identity| -> Vec<String> {
            let known = |name: &&String| !two.passes.contains(name);
            one.passes.iter().filter(known).cloned().collect()
        };
        let (there, here) = (lacking(self, other), lacking(other, self));
        if !there.is_empty() {
            found.push(format!("it does not know the passes {}", there.join(", ")));
        }
        if !here.is_empty() {
            found.push(format!("this does not know its passes {}", here.join(", ")));
        }
        found
    }
}

/// The short identity in an executor's id.
pub(crate) fn of_executor(id: &str) -> Option<&str> {
    let (short, _) = id.strip_prefix("metra+")?.rsplit_once('+')?;
    (short.split('+').count() == 3).then_some(short)
}

/// `0.1.0+55.0.0+ab12cd34` as a sentence says it.
fn in_words(short: &str) -> String {
    match short.split('+').collect::<Vec<_>>()[..] {
        [metra, ballista, passes] => {
            format!("metra {metra} with Ballista {ballista} and passes {passes}")
        }
        _ => short.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(metra: &str, passes: &[&str]) -> Identity {
        Identity {
            metra: metra.into(),
            ballista: "55.0.0".into(),
            passes: passes.iter().map(|&p| p.into()).collect(),
        }
    }

    #[test]
    fn a_difference_names_both_sides() {
        let here = identity("0.1.0", &["embed", "moments"]);
        assert!(here.check("the scheduler", &here.clone()).is_ok());
        let other = identity("0.2.0", &["moments", "sums"]);
        let text = here.check("the scheduler at h:1", &other).unwrap_err();
        assert_eq!(
            text.to_string(),
            "the scheduler at h:1 does not fit: it runs metra 0.2.0, this is metra 0.1.0; it does \
             not know the passes embed; this does not know its passes sums; run the same build of \
             metra everywhere"
        );
    }

    #[test]
    fn an_executor_is_known_by_its_id() {
        let here = identity("0.1.0", &["moments"]);
        let id = here.executor_id();
        assert_eq!(of_executor(&id), Some(here.short().as_str()));
        assert!(here.check_executor("executor h:2", &id).is_ok());
        let other = identity("0.1.0", &[]);
        let text = here.check_executor("executor h:2", &other.executor_id());
        let text = text.unwrap_err().to_string();
        assert!(text.contains(&other.short()[13..]), "{text}");
        let foreign = here.check_executor("executor h:2", "7d9c").unwrap_err();
        assert!(foreign.to_string().contains("not started by"));
    }
}
