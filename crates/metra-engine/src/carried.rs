//! Settings on their way to other machines: small ones inside the plan, large ones by address.
//!
//! A plan is written anew for every task, so a megabyte in it is a megabyte a task. Larger settings
//! are put once into a folder that all machines reach, under the digest of their bytes: the address
//! is the version, a wrong or half-written object is noticed, and what is there already is not
//! written again.

use crate::stores::Place;
use crate::{Error, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Bytes up to which settings travel inside the plan.
pub(crate) const INLINE: usize = 256 << 10;

/// Bytes that travel with a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Carried {
    /// As they are.
    Inline(Vec<u8>),
    /// In a store, where their digest names them.
    Stored {
        /// Address of the object.
        address: String,
        /// blake3 of its bytes.
        digest: [u8; 32],
    },
}

impl Carried {
    /// Pack bytes; `scratch` is a folder that all machines reach.
    pub(crate) async fn pack(
        bytes: Vec<u8>,
        scratch: Option<&Place>,
        runtime: &RuntimeEnv,
    ) -> Result<Carried> {
        if bytes.len() <= INLINE {
            return Ok(Carried::Inline(bytes));
        }
        let scratch = scratch.ok_or_else(|| {
            Error::engine(
                format!("sending {} bytes of settings", bytes.len()),
                "settings this large need a folder that all machines reach (--scratch)",
            )
        })?;
        let digest = blake3::hash(&bytes);
        let place = scratch.join(&format!("settings-{}", digest.to_hex()));
        if place.read(runtime).await.is_ok_and(|found| found == bytes) {
            tracing::debug!("{} is there already", place.address());
        } else {
            place.write(runtime, bytes).await?;
        }
        Ok(Carried::Stored {
            address: place.address(),
            digest: *digest.as_bytes(),
        })
    }

    /// The bytes.
    pub(crate) async fn unpack(&self, runtime: &RuntimeEnv) -> Result<Arc<Vec<u8>>> {
        let (address, digest) = match self {
            Carried::Inline(bytes) => return Ok(Arc::new(bytes.clone())),
            Carried::Stored { address, digest } => (address, digest),
        };
        if let Some(known) = recent().get(digest) {
            return Ok(known.clone());
        }
        let bytes = Place::parse(address)?.read(runtime).await?;
        if blake3::hash(&bytes).as_bytes() != digest {
            let problem = "the object's bytes are not those that were sent";
            return Err(Error::table(address.clone(), problem));
        }
        let bytes = Arc::new(bytes);
        let mut recent = recent();
        if recent.len() >= RECENT {
            recent.clear();
        }
        recent.insert(*digest, bytes.clone());
        Ok(bytes)
    }
}

/// Objects kept for the next task: those of a round are asked for by every shard.
const RECENT: usize = 8;

type Recent = BTreeMap<[u8; 32], Arc<Vec<u8>>>;

fn recent() -> std::sync::MutexGuard<'static, Recent> {
    static KNOWN: Mutex<Recent> = Mutex::new(BTreeMap::new());
    // A panic elsewhere leaves whole objects behind.
    KNOWN
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn large_settings_travel_by_address_and_are_checked() {
        let folder = std::env::temp_dir().join(format!("metra-carried-{}", std::process::id()));
        let scratch = Place::parse(&format!("{}/", folder.display())).unwrap();
        let runtime = crate::stores::runtime().unwrap();
        let bytes: Vec<u8> = (0..INLINE as u32 + 1).map(|i| i as u8).collect();
        let carried = Carried::pack(bytes.clone(), Some(&scratch), &runtime).await;
        let carried = carried.unwrap();
        let Carried::Stored { address, .. } = &carried else {
            panic!("expected an address");
        };
        // Spoil the object before it was ever read: the digest must notice.
        let place = Place::parse(address).unwrap();
        place.write(&runtime, vec![0; bytes.len()]).await.unwrap();
        let error = carried.unpack(&runtime).await.unwrap_err().to_string();
        assert!(error.contains("not those that were sent"), "{error}");
        place.write(&runtime, bytes.clone()).await.unwrap();
        assert_eq!(*carried.unpack(&runtime).await.unwrap(), bytes);
        let small = Carried::pack(vec![7], None, &runtime).await.unwrap();
        assert_eq!(*small.unpack(&runtime).await.unwrap(), vec![7]);
        let nowhere = Carried::pack(bytes, None, &runtime).await.unwrap_err();
        assert!(nowhere.to_string().contains("--scratch"), "{nowhere}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
