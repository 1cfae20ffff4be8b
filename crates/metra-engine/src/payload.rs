//! Settings for other machines: small ones are inside the plan, large ones by address.
//!
//! A plan is written anew for every task, so a megabyte in it is a megabyte per task. Larger settings
//! are put into a folder that all machines reach, in pieces under the digests of their bytes: the
//! address is the version, a wrong or half-written object is noticed, and what is there already is
//! neither written nor read again.

use crate::stores::Place;
use crate::{Error, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes up to which settings are inside the plan.
pub(crate) const INLINE: usize = 1 << 20;
/// Bytes of a piece. Of settings that change in part, the pieces that do not are there already.
const PIECE: usize = 1 << 20;
/// Bytes of pieces that are kept for the next task: those of a round are asked for by every shard.
const RECENT: usize = 256 << 20;

/// Bytes that belong to a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Payload {
    /// As they are.
    Inline(Vec<u8>),
    /// In pieces in a folder of a store, where their digests name them.
    Stored {
        /// SchedulerAddress of the folder.
        folder: String,
        /// blake3 of every piece.
        pieces: Vec<[u8; 32]>,
    },
}

impl Payload {
    /// Pack bytes; `scratch` is a folder that all machines reach.
    pub(crate) async fn pack(
        bytes: Vec<u8>,
        scratch: Option<&Place>,
        runtime: &RuntimeEnv,
    ) -> Result<Payload> {
        if bytes.len() <= INLINE {
            return Ok(Payload::Inline(bytes));
        }
        let scratch = scratch.ok_or_else(|| {
            Error::engine(
                format!("sending {} bytes of settings", bytes.len()),
                "settings this large need a folder that all machines reach (--scratch)",
            )
        })?;
        let mut pieces = Vec::with_capacity(bytes.len().div_ceil(PIECE));
        for piece in bytes.chunks(PIECE) {
            let digest = *blake3::hash(piece).as_bytes();
            let place = scratch.join(&name(&digest));
            if place.size(runtime).await != Some(piece.len() as u64) {
                place.write(runtime, piece.to_vec()).await?;
            }
            pieces.push(digest);
        }
        let folder = scratch.address() + "/";
        Ok(Payload::Stored { folder, pieces })
    }

    /// The bytes.
    pub(crate) async fn unpack(&self, runtime: &RuntimeEnv) -> Result<Vec<u8>> {
        let (folder, pieces) = match self {
            Payload::Inline(bytes) => return Ok(bytes.clone()),
            Payload::Stored { folder, pieces } => (Place::parse(folder)?, pieces),
        };
        let mut bytes = Vec::with_capacity(pieces.len() * PIECE);
        for digest in pieces {
            let known = recent().get(digest).cloned();
            let piece = match known {
                Some(piece) => piece,
                None => {
                    let place = folder.join(&name(digest));
                    let piece = place.read(runtime).await?;
                    if blake3::hash(&piece).as_bytes() != digest {
                        let problem = "the object's bytes are not those that were sent";
                        return Err(Error::table(place.address(), problem));
                    }
                    keep(*digest, Arc::new(piece))
                }
            };
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }
}

fn name(digest: &[u8; 32]) -> String {
    format!("settings-{}", blake3::Hash::from_bytes(*digest).to_hex())
}

type Recent = BTreeMap<[u8; 32], Arc<Vec<u8>>>;

fn recent() -> MutexGuard<'static, Recent> {
    static KNOWN: Mutex<Recent> = Mutex::new(BTreeMap::new());
    // A panic elsewhere leaves whole pieces behind.
    KNOWN
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn keep(digest: [u8; 32], piece: Arc<Vec<u8>>) -> Arc<Vec<u8>> {
    let mut recent = recent();
    if recent.len() >= RECENT / PIECE {
        recent.clear();
    }
    recent.insert(digest, piece.clone());
    piece
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn large_settings_travel_by_address_and_are_checked() {
        let folder = std::env::temp_dir().join(format!("metra-payload-{}", std::process::id()));
        let scratch = Place::parse(&format!("{}/", folder.display())).unwrap();
        let runtime = crate::stores::runtime().unwrap();
        let bytes: Vec<u8> = (0..3 * PIECE as u32 / 2).map(|i| (i / 7) as u8).collect();
        let pack = async |bytes: &[u8]| {
            let payload = Payload::pack(bytes.to_vec(), Some(&scratch), &runtime).await;
            payload.unwrap()
        };
        let payload = pack(&bytes).await;
        let Payload::Stored { pieces, .. } = &payload else {
            panic!("expected an address");
        };
        assert_eq!(pieces.len(), 2);
        // Spoil a piece before it was ever read: the digest must notice.
        let place = scratch.join(&name(&pieces[1]));
        let whole = place.read(&runtime).await.unwrap();
        place.write(&runtime, vec![0; whole.len()]).await.unwrap();
        let error = payload.unpack(&runtime).await.unwrap_err().to_string();
        assert!(error.contains("not those that were sent"), "{error}");
        place.write(&runtime, whole).await.unwrap();
        assert_eq!(payload.unpack(&runtime).await.unwrap(), bytes);
        // Of settings that end otherwise the beginning is there already.
        let mut other = bytes.clone();
        other[3 * PIECE / 2 - 1] ^= 1;
        let others = pack(&other).await;
        assert_eq!(others.unpack(&runtime).await.unwrap(), other);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3);
        let small = Payload::pack(vec![7], None, &runtime).await.unwrap();
        assert_eq!(small.unpack(&runtime).await.unwrap(), vec![7]);
        let nowhere = Payload::pack(bytes, None, &runtime).await.unwrap_err();
        assert!(nowhere.to_string().contains("--scratch"), "{nowhere}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
