//! Model files: what comes back, what leaves no trace, and what is refused.

use super::*;
use crate::data::{ElementMap, Narrowing};
use crate::linalg::RowBuf;
use crate::model::{
    Chain, Code, Int8Scale, LowRank, Map, MatchDecision, Origin, ProductCode, Space, Step,
};
use crate::random::Stream;

pub(super) fn model() -> Model {
    let mut stream = Stream::new(1, "test", 0);
    let mut random = |len: usize, dim| {
        let values = (0..len * dim).map(|_| stream.normal() as f32).collect();
        RowBuf::from_values(values, dim).unwrap()
    };
    let steps = vec![
        Step::Element(ElementMap::Log { factor: 10.0 }),
        Step::CentreGroups {
            names: vec!["a".into(), "b".into()],
            means: random(2, 6),
        },
        Step::Scale {
            factors: random(1, 6).into_values(),
        },
        Step::Project(LowRank::new(random(4, 6), Some(vec![0.5; 4])).unwrap()),
    ];
    let map = Map::LowRank(LowRank::new(random(3, 4), None).unwrap());
    let chain = Chain::new(6, steps, map, Space::Cosine).unwrap();
    let narrowing = Narrowing {
        shift: vec![1e9, 0.0, 0.0, 0.0, 0.1, 0.0],
        scale: 0.5,
    };
    let origin = Origin {
        method: "warca".into(),
        parameters: BTreeMap::from([("rank".into(), "3".into())]),
        facts: BTreeMap::from([("scale".into(), 0.1 + 0.2)]),
        ..Origin::default()
    };
    Model::new(Some(narrowing), chain, origin).unwrap()
}

#[test]
fn what_is_saved_is_loaded() {
    let model = model();
    let bytes = model.to_bytes().unwrap();
    assert_eq!(Model::from_bytes(&bytes).unwrap(), model);
    assert_eq!(model.to_bytes().unwrap(), bytes);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    model.save(&path).unwrap();
    assert_eq!(Model::load(&path).unwrap(), model);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_decision_is_kept_and_its_absence_leaves_no_trace() {
    let plain = model();
    let bytes = plain.to_bytes().unwrap();
    let found = |bytes: &[u8]| bytes.windows(8).any(|w| w == b"decision");
    assert!(
        !found(&bytes),
        "files from before decisions must stay as they are"
    );
    let decision = MatchDecision {
        threshold: f64::from(0.1_f32.next_down()),
        asked: 1e-3,
        false_match_rate: 9.7e-4,
        true_match_rate: 0.8,
        low: 0.7,
        high: 0.85,
        same: 12,
        different: 3000,
        data: "digest".into(),
    };
    assert!(decision.is_same(-1.0) && !decision.is_same(0.1) && !decision.is_same(f64::NAN));
    let with = plain.clone().with_decision(decision.clone()).unwrap();
    let loaded = Model::from_bytes(&with.to_bytes().unwrap()).unwrap();
    assert_eq!(loaded, with);
    let wrong = MatchDecision {
        threshold: f64::INFINITY,
        ..decision
    };
    assert!(plain.with_decision(wrong).is_err());
}

#[test]
fn a_code_is_kept_and_its_absence_leaves_no_trace() {
    let plain = model();
    let bytes = plain.to_bytes().unwrap();
    assert!(
        !bytes.windows(6).any(|w| w == b"\"code\\"),
        "files without codes stay as they are"
    );
    let centroids = RowBuf::from_values((0..12).map(|v| v as f32).collect(), 3).unwrap();
    let codes = [
        Code::Float16,
        Code::Int8(Int8Scale::PerVector),
        Code::Int8(Int8Scale::Direction),
        Code::Int8(Int8Scale::PerDimension(vec![0.1, 0.2, 0.3])),
        Code::Bits {
            scale: 0.1,
            queries: true,
        },
        Code::Product(ProductCode::new(2, centroids).unwrap()),
    ];
    let mut seen = vec![bytes];
    for code in codes {
        let mut with = plain.clone();
        with.chain = with.chain.with_code(Some(code)).unwrap();
        let bytes = with.to_bytes().unwrap();
        assert_eq!(Model::from_bytes(&bytes).unwrap(), with);
        // Every byte counts: what is changed is refused.
        for place in (0..bytes.len()).step_by(7) {
            let mut changed = bytes.clone();
            changed[place] ^= 0x10;
            assert!(Model::from_bytes(&changed).is_err(), "byte {place}");
        }
        assert!(!seen.contains(&bytes));
        seen.push(bytes);
    }
}

#[test]
fn a_code_that_does_not_fit_the_map_is_refused() {
    let wide = RowBuf::from_values(vec![0.0; 8], 4).unwrap();
    for code in [
        Code::Product(ProductCode::new(2, wide).unwrap()),
        Code::Int8(Int8Scale::PerDimension(vec![0.1])),
        Code::Bits {
            scale: f32::NAN,
            queries: false,
        },
    ] {
        assert!(model().chain.with_code(Some(code)).is_err());
    }
}

#[test]
fn names_of_outputs_are_kept_and_their_absence_leaves_no_trace() {
    let plain = model();
    let bytes = plain.to_bytes().unwrap();
    let found = |bytes: &[u8]| bytes.windows(7).any(|w| w == b"outputs");
    assert!(!found(&bytes), "files without names must stay as they are");
    let names = |names: [&str; 3]| names.map(str::to_owned).to_vec();
    let with = plain
        .clone()
        .with_outputs(names(["smiling", "young", "male"]));
    let with = with.unwrap();
    let loaded = Model::from_bytes(&with.to_bytes().unwrap()).unwrap();
    assert_eq!(loaded, with);
    assert_eq!(loaded.outputs[1], "young");
    assert!(plain.clone().with_outputs(vec!["smiling".into()]).is_err());
    assert!(plain.clone().with_outputs(names(["a", "b", "a"])).is_err());
    assert!(plain.with_outputs(names(["a", "", "c"])).is_err());
}

#[test]
fn every_number_in_the_header_comes_back() {
    // A parser that is off by one unit in the last place would make the digest fail: once did.
    let mut stream = Stream::new(3, "test", 0);
    for round in 0..500 {
        let mut model = model();
        for fact in 0..8 {
            model
                .origin
                .facts
                .insert(format!("fact {fact}"), stream.normal() / 3.0);
        }
        let bytes = model.to_bytes().unwrap();
        assert_eq!(Model::from_bytes(&bytes).unwrap(), model, "round {round}");
    }
}

#[test]
fn ten_thousand_mutations_never_load_as_something_else() {
    let model = model();
    let good = model.to_bytes().unwrap();
    let header_len = u64::from_le_bytes(good[..8].try_into().unwrap()) as usize;
    let mut rejected = 0;
    for round in 0..10_000 {
        let mut stream = Stream::new(2, "mutation", round);
        let mut bytes = good.clone();
        match round % 5 {
            0 => bytes.truncate(stream.below(good.len() as u64) as usize),
            1 => {
                let at = stream.below(good.len() as u64) as usize;
                bytes[at] ^= 1 << stream.below(8);
            }
            2 => {
                let at = 8 + stream.below(header_len as u64) as usize;
                bytes[at] = b"0123456789{}[]\",:-eE \0"[stream.below(22) as usize];
            }
            3 => {
                let claimed = stream.below(u64::MAX) >> stream.below(64);
                bytes[..8].copy_from_slice(&claimed.to_le_bytes());
            }
            _ => {
                // Cut a piece out of the header and mend the length, so that parsing gets far.
                let from = 8 + stream.below(header_len as u64) as usize;
                let to = (from + stream.below(40) as usize).min(8 + header_len);
                bytes.drain(from..to);
                let left = (header_len - (to - from)) as u64;
                bytes[..8].copy_from_slice(&left.to_le_bytes());
            }
        }
        match Model::from_bytes(&bytes) {
            Ok(loaded) => assert_eq!(loaded, model, "round {round}"),
            Err(_) => rejected += 1,
        }
    }
    assert!(rejected > 9_000, "only {rejected} were rejected");
}

#[test]
fn a_forged_digest_does_not_hide_nonsense() {
    // A file with a correct digest but weights that are not finite must not load either.
    let bytes = model().to_bytes().unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    let text = &metadata.metadata().as_ref().unwrap()[KEY];
    let mut header: Header = serde_json::from_str(text).unwrap();
    header.digest.clear();
    let nan = bytemuck::cast_slice(&[f32::NAN; 12]).to_vec();
    let mut tensors: BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)> = file
        .tensors()
        .into_iter()
        .map(|(n, v)| (n, (v.dtype(), v.shape().to_vec(), v.data().to_vec())))
        .collect();
    tensors.get_mut("map.weights").unwrap().2 = nan;
    header.digest = digest(
        &canonical(&header).unwrap(),
        tensors
            .iter()
            .map(|(n, t)| (n.as_str(), t.0, &t.1[..], &t.2[..])),
    );
    let views: Vec<_> = tensors
        .iter()
        .map(|(n, t)| (n.as_str(), TensorView::new(t.0, t.1.clone(), &t.2).unwrap()))
        .collect();
    let metadata = HashMap::from([(KEY.to_owned(), canonical(&header).unwrap())]);
    let forged = serialize(views, Some(metadata)).unwrap();
    let error = Model::from_bytes(&forged).unwrap_err().to_string();
    assert!(
        error.contains("map.weights") && error.contains("finite"),
        "{error}"
    );
}
