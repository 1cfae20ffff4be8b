//! FAISS: an index file whose vectors are mapped on their way in, `IndexPreTransform` in front of
//! `IndexFlatL2`, `IndexFlatIP` or an index of codes (in an `IndexIDMap` where items have ids), or any index that is there
//! already.
//!
//! The layout is that of `index_write.cpp` (written here as FAISS 1.15.1 does, read by 1.7.4 too): numbers as they lie in memory, little
//! endian, vectors with their length as u64 in front. Nothing in it needs FAISS to be written, and the
//! bytes of an index that is there already are copied as they are.

use super::faiss_code::FaissCode;
use super::map::{Export, MapPart, bias, write_error};
use crate::bytes::{little_endian, write_counted};
use crate::{Error, Result};
use metra::data::{Corpus, Groups};
use metra::internal::AtomicFile;
use metra::linalg::Rows;
use metra::model::{Distance, Plan, Side, for_each_embedded};
use std::io::{Read, Write};
use std::path::Path;

const FORMAT: &str = "a FAISS index";
/// Bytes of an index up to and with its metric: four letters, d, ntotal, two numbers that are not
/// used, is_trained, metric_type.
const HEADER: usize = 4 + 4 + 8 + 8 + 8 + 1 + 4;
/// What FAISS writes where it once had other numbers.
const UNUSED: i64 = 1 << 20;

/// Writes a flat index, or one of codes where the model has such as FAISS has, with the map in front, whose stored vectors come one block after another.
pub struct FaissWriter<W: Write> {
    out: W,
    dim: usize,
    rows: u64,
    written: u64,
    ids: Option<Vec<i64>>,
    code: Option<FaissCode>,
}

impl<W: Write> FaissWriter<W> {
    /// An index that will hold `rows` vectors, as the plan stores them; known by their numbers, or by an
    /// id each.
    pub fn create(
        mut out: W,
        export: &Export,
        plan: &Plan,
        rows: u64,
        ids: Option<Vec<i64>>,
    ) -> Result<Self> {
        let metric = metric(plan.distance())?;
        let dim = export.output_dim();
        let mut bytes = pre_transform(export, metric, rows)?;
        if let Some(ids) = &ids {
            if ids.len() as u64 != rows {
                let problem = format!("expected {rows} ids, but was given {}", ids.len());
                return Err(Error::found(FORMAT, problem));
            }
            bytes.extend(b"IxMp");
            header(&mut bytes, dim, rows, metric)?;
        }
        let code = FaissCode::of(plan);
        bytes.extend(match (&code, metric) {
            (Some(code), _) => code.letters(),
            (None, 0) => *b"IxFI",
            (None, _) => *b"IxF2",
        });
        header(&mut bytes, dim, rows, metric)?;
        let numbers = match &code {
            Some(code) => {
                code.write_quantiser(&mut bytes);
                code.item_bytes()
            }
            None => dim,
        };
        bytes.extend((rows * numbers as u64).to_le_bytes());
        out.write_all(&bytes).map_err(failed)?;
        Ok(FaissWriter {
            out,
            dim,
            rows,
            written: 0,
            ids,
            code,
        })
    }

    /// Append stored vectors.
    pub fn push(&mut self, rows: Rows<'_>) -> Result<()> {
        let first = self.written;
        self.written += rows.len() as u64;
        if rows.dim() != self.dim || self.written > self.rows {
            return Err(self.wrong(rows.dim()));
        }
        let bytes = match &self.code {
            Some(code) => code.encode(first, rows)?,
            None => little_endian(rows.values()),
        };
        self.out.write_all(&bytes).map_err(failed)
    }

    /// Give back what was written to; the number of rows must be the one announced.
    pub fn finish(mut self) -> Result<W> {
        if self.written != self.rows {
            return Err(self.wrong(self.dim));
        }
        if let Some(code) = &self.code {
            let mut end = Vec::new();
            code.write_end(&mut end);
            self.out.write_all(&end).map_err(failed)?;
        }
        if let Some(ids) = &self.ids {
            let length = (ids.len() as u64).to_le_bytes();
            self.out.write_all(&length).map_err(failed)?;
            for id in ids {
                self.out.write_all(&id.to_le_bytes()).map_err(failed)?;
            }
        }
        Ok(self.out)
    }

    fn wrong(&self, dim: usize) -> Error {
        let problem = format!(
            "expected {} vectors of dimension {}, but was given {} of {dim}",
            self.rows, self.dim, self.written
        );
        Error::found(FORMAT, problem)
    }
}

/// Write an index file of items, as the plan stores them. `added` is told how many there are so far, and can end
/// the work by an error.
pub fn write_faiss(
    path: &Path,
    (export, plan): (&Export, &Plan),
    (items, groups): (&dyn Corpus, Option<&Groups>),
    ids: Option<Vec<i64>>,
    added: &mut dyn FnMut(u64) -> metra::Result<()>,
) -> Result<()> {
    let target = AtomicFile::create(path)?;
    let mut writer = FaissWriter::create(target, export, plan, items.len(), ids)?;
    let mut failure = None;
    let outcome = for_each_embedded(plan, Side::Item, items, groups, &mut |block| {
        if let Err(error) = writer.push(block.rows()) {
            failure = Some(error);
            return Err(metra::Error::Interrupted);
        }
        added(writer.written)
    });
    if let Some(error) = failure {
        return Err(error);
    }
    outcome?;
    Ok(writer.finish()?.finish()?)
}

/// What the first bytes of an index file say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaissIndex {
    /// The four letters that FAISS knows its kind by.
    pub kind: String,
    /// Dimension of its vectors.
    pub dim: usize,
    /// Vectors in it.
    pub rows: u64,
    /// What it compares by.
    pub distance: Distance,
    /// The bytes read so far.
    start: [u8; HEADER],
}

impl FaissIndex {
    /// Read the beginning of an index file.
    pub fn read(path: &Path, from: &mut impl Read) -> Result<Self> {
        let wrong = |problem: String| Error::file(path, problem);
        let mut start = [0; HEADER];
        from.read_exact(&mut start)
            .map_err(|e| wrong(format!("expected an index of FAISS, but {e}")))?;
        let kind = String::from_utf8_lossy(&start[..4]).into_owned();
        if !kind.starts_with('I') || kind.starts_with("IB") {
            return Err(wrong(format!(
                "expected an index of FAISS over floats, but it begins with {kind:?}"
            )));
        }
        let number = |at: usize| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(&start[at..at + 4]);
            i32::from_le_bytes(bytes)
        };
        let mut rows = [0; 8];
        rows.copy_from_slice(&start[8..16]);
        let dim = usize::try_from(number(4)).unwrap_or(0);
        let rows = u64::try_from(i64::from_le_bytes(rows));
        let (Ok(rows), true) = (rows, dim > 0) else {
            return Err(wrong(
                "expected an index of FAISS, but its dimension or its number of vectors is below 0"
                    .into(),
            ));
        };
        let distance = match number(HEADER - 4) {
            0 => Distance::InnerProduct,
            1 => Distance::SquaredL2,
            other => {
                return Err(wrong(format!(
                    "expected an index by inner product (0) or L2 (1), but its metric is {other}"
                )));
            }
        };
        Ok(FaissIndex {
            kind,
            dim,
            rows,
            distance,
            start,
        })
    }
}

/// Put the map in front of an index that is there already. `index` is what was read of it, `rest` gives
/// all bytes after that, which are copied. The index must hold what the plan stores.
pub fn wrap_faiss(
    mut out: impl Write,
    export: &Export,
    plan: &Plan,
    path: &Path,
    index: &FaissIndex,
    rest: &mut impl Read,
) -> Result<()> {
    let expected = (export.output_dim(), plan.distance());
    if (index.dim, index.distance) != expected {
        return Err(Error::file(
            path,
            format!(
                "expected an index of dimension {} by {} (what the {} way stores), but it has {} by {}",
                expected.0,
                expected.1,
                plan.way(),
                index.dim,
                index.distance
            ),
        ));
    }
    let bytes = pre_transform(export, metric(plan.distance())?, index.rows)?;
    out.write_all(&bytes).map_err(failed)?;
    out.write_all(&index.start).map_err(failed)?;
    std::io::copy(rest, &mut out).map_err(failed)?;
    Ok(())
}

/// `IndexPreTransform` up to the index that it is in front of.
fn pre_transform(export: &Export, metric: i32, rows: u64) -> Result<Vec<u8>> {
    let parts = export.parts(FORMAT)?;
    let mut bytes = b"IxPT".to_vec();
    header(&mut bytes, export.input_dim(), rows, metric)?;
    bytes.extend((parts.len() as i32).to_le_bytes());
    let mut dim = export.input_dim();
    for part in &parts {
        let before = dim;
        match part {
            MapPart::Affine(map) => {
                dim = map.output_dim();
                bytes.extend(b"LTra");
                bytes.push(u8::from(map.offset().is_some()));
                write_counted(&mut bytes, map.weights().values());
                let offset = map.offset().map(|_| bias(map)).unwrap_or_default();
                write_counted(&mut bytes, &offset);
            }
            MapPart::UnitLength => {
                bytes.extend(b"VNrm");
                bytes.extend(2.0_f32.to_le_bytes());
            }
        }
        bytes.extend(as_i32(before)?.to_le_bytes());
        bytes.extend(as_i32(dim)?.to_le_bytes());
        bytes.push(1);
    }
    Ok(bytes)
}

/// What every index has after its four letters.
fn header(bytes: &mut Vec<u8>, dim: usize, rows: u64, metric: i32) -> Result<()> {
    bytes.extend(as_i32(dim)?.to_le_bytes());
    bytes.extend(rows.to_le_bytes());
    bytes.extend(UNUSED.to_le_bytes());
    bytes.extend(UNUSED.to_le_bytes());
    bytes.push(1);
    bytes.extend(metric.to_le_bytes());
    Ok(())
}

fn as_i32(number: usize) -> Result<i32> {
    i32::try_from(number).map_err(|_| {
        let most = i32::MAX;
        let problem = format!("expected at most {most} dimensions, but found {number}");
        Error::found(FORMAT, problem)
    })
}

/// The number by which FAISS knows a distance.
fn metric(distance: Distance) -> Result<i32> {
    match distance {
        Distance::InnerProduct => Ok(0),
        Distance::SquaredL2 => Ok(1),
        Distance::Cosine => Err(Error::unsupported(
            FORMAT,
            "a plan by cosine",
            "FAISS has l2 and ip: choose a plan by one of them",
        )),
    }
}

fn failed(source: std::io::Error) -> Error {
    write_error(FORMAT, source)
}

#[cfg(test)]
mod tests {
    use super::super::map::tests::{model, two_of_three};
    use super::*;
    use metra::linalg::RowBuf;
    use metra::model::{Model, PlanConstraints, Space};

    fn faiss_plan(model: &Model) -> Plan {
        let constraints = PlanConstraints {
            distances: vec![Distance::SquaredL2, Distance::InnerProduct],
            ..PlanConstraints::default()
        };
        Plan::choose_for_model(model, &constraints).unwrap()
    }

    fn written(space: Space, items: &[f32], ids: Option<Vec<i64>>) -> Vec<u8> {
        let model = model(3, Vec::new(), two_of_three(), space);
        let plan = faiss_plan(&model);
        let export = Export::queries(&model, &plan).unwrap();
        let rows = RowBuf::from_values(items.to_vec(), 2).unwrap();
        let length = rows.len() as u64;
        let mut writer = FaissWriter::create(Vec::new(), &export, &plan, length, ids).unwrap();
        writer.push(rows.rows()).unwrap();
        writer.finish().unwrap()
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    // The texts were printed by tests/oracles/constants/faiss_bytes.py with faiss-cpu 1.15.1.
    #[test]
    fn bytes_are_those_of_faiss() {
        let empty = "49785054030000000000000000000000000010000000000000001000000000000101000000010000\
                     004c5472610106000000000000000000803f0000004000004040000080400000a0400000c0400200\
                     0000000000000000003f000080bf0300000002000000014978463202000000000000000000000000\
                     00100000000000000010000000000001010000000000000000000000";
        assert_eq!(hex(&written(Space::SquaredL2, &[], None)), empty);
        let filled = "4978505403000000020000000000000000001000000000000000100000000000010000000002000\
                      0004c5472610106000000000000000000803f0000004000004040000080400000a0400000c040020\
                      00000000000000000003f000080bf03000000020000000156\
                      4e726d00000040020000000200000001497846490200000002000000000000000000100000000000\
                      000010000000000001000000000400000000000000\
                      0000803f000000000000003f000040bf";
        let items = [1.0, 0.0, 0.5, -0.75];
        assert_eq!(hex(&written(Space::Cosine, &items, None)), filled);
        let named = "49785054030000000100000000000000000010000000000000001000000000000101000000010000\
                    004c5472610106000000000000000000803f0000004000004040000080400000a0400000c0400200\
                    0000000000000000003f000080bf03000000020000000149784d7002000000010000000000000000\
                    00100000000000000010000000000001010000004978463202000000010000000000000000001000\
                    000000000000100000000000010100000002000000000000000000e0400000004101000000000000\
                    00fdffffffffffffff";
        let found = written(Space::SquaredL2, &[7.0, 8.0], Some(vec![-3]));
        assert_eq!(hex(&found), named);
    }

    #[test]
    fn an_index_that_is_there_keeps_its_bytes() {
        let path = Path::new("there.faiss");
        let inner = {
            // A flat index by L2 of one vector (7, 8), by hand.
            let mut bytes = b"IxF2".to_vec();
            header(&mut bytes, 2, 1, 1).unwrap();
            write_counted(&mut bytes, &[7.0, 8.0]);
            bytes
        };
        let model = |space| model(3, Vec::new(), two_of_three(), space);
        let wrap = |model: &Model, inner: &[u8]| {
            let mut rest = inner;
            let index = FaissIndex::read(path, &mut rest)?;
            let plan = faiss_plan(model);
            let export = Export::queries(model, &plan)?;
            let mut out = Vec::new();
            wrap_faiss(&mut out, &export, &plan, path, &index, &mut rest).map(|()| out)
        };
        let out = wrap(&model(Space::SquaredL2), &inner).unwrap();
        assert!(out.ends_with(&inner) && out.starts_with(b"IxPT"));
        // The same as if the vector had been written into a new index, but for its values' place.
        assert_eq!(out, written(Space::SquaredL2, &[7.0, 8.0], None));
        let text = wrap(&model(Space::InnerProduct), &inner)
            .unwrap_err()
            .to_string();
        let expected = "there.faiss: expected an index of dimension 2 by ip (what the mapped way stores), \
                        but it has 2 by l2";
        assert_eq!(text, expected);
        let refused = |bytes: &[u8]| {
            FaissIndex::read(path, &mut &bytes[..])
                .unwrap_err()
                .to_string()
        };
        assert!(refused(b"IBxF").contains("expected an index of FAISS"));
        let mut binary = inner.clone();
        binary[1] = b'B';
        assert!(refused(&binary).contains("over floats"));
        let mut metric = inner.clone();
        metric[HEADER - 4] = 23;
        assert!(refused(&metric).contains("its metric is 23"));
        let mut below = inner;
        below[7] = 0x80;
        assert!(refused(&below).contains("below 0"));
    }

    #[test]
    fn the_number_of_rows_is_kept() {
        let model = model(3, Vec::new(), two_of_three(), Space::SquaredL2);
        let plan = faiss_plan(&model);
        let export = Export::queries(&model, &plan).unwrap();
        let writer = || FaissWriter::create(Vec::new(), &export, &plan, 1, None).unwrap();
        assert!(writer().finish().is_err());
        let mut other = writer();
        assert!(other.push(Rows::new(&[1.0, 2.0, 3.0], 3).unwrap()).is_err());
        let mut many = writer();
        assert!(many.push(Rows::new(&[1.0; 4], 2).unwrap()).is_err());
    }
}
