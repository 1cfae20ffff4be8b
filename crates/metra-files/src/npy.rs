//! npy: a matrix of vectors, or a companion file of one whole number per row.
//!
//! The header is read here and not by a library: it must be held against the length of the file
//! before anything is multiplied or allocated, since a shape of 2^40 × 2^40 fits into 80 bytes.

use crate::column::{Cell, Column, ColumnBuilder};
use crate::element::{ElementType, Vector};
use crate::error::{Error, Place, Result};
use crate::sink::{Chunk, Source, check_finite, collect, notes};
use crate::table::{MissingValues, NarrowingRule, ReadProgress, Table, TableOptions, extension};
use metra::data::{Corpus, MappedCorpus};
use metra::internal::{ColumnRanges, NarrowingJudgement};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes decoded at once.
const CHUNK_BYTES: u64 = 4 << 20;
/// A header of three short entries needs less than this; numpy itself refuses more than 10,000.
const LONGEST_HEADER: u64 = 1 << 16;

pub(crate) fn read(
    path: &Path,
    options: &TableOptions,
    progress: ReadProgress<'_>,
) -> Result<Table> {
    if let Some(filter) = options.filters.first() {
        let problem = format!(
            "the filter {filter} cannot be used: an npy file has no columns; use Parquet or CSV"
        );
        return Err(Error::file(path, problem));
    }
    if let Some(vector) = &options.vector {
        let problem = format!("the vectors cannot be named ({vector:?}): an npy file has no names");
        return Err(Error::file(path, problem));
    }
    let header = Header::read(path)?;
    let [rows, dim] = header.shape[..] else {
        let problem = format!(
            "expected two axes (rows × numbers), but the shape is {:?}",
            header.shape
        );
        return Err(Error::file(path, problem));
    };
    if dim == 0 || rows == 0 {
        let problem = format!("expected at least 1 × 1 numbers, but the shape is {rows} × {dim}");
        return Err(Error::file(path, problem));
    }
    let element = header.element().ok_or_else(|| {
        let problem = format!(
            "expected numbers of type f2, f4, f8, i1, i2, i4, u1 or u2, but found {:?}",
            header.descr
        );
        Error::file(path, problem)
    })?;
    let mut columns = companions(path, rows, &options.columns)?;
    let source = NpySource {
        path: path.to_path_buf(),
        element,
        rows,
        dim,
        header,
    };
    let mut table = match mapped(&source, options, progress)? {
        Some(table) => table,
        None => {
            let without_columns = TableOptions {
                columns: Vec::new(),
                ..options.clone()
            };
            collect(&source, &without_columns, progress)?
        }
    };
    if let Some(kept) = &table.rows {
        let kept: Vec<usize> = kept.iter().map(|row| *row as usize).collect();
        columns.values_mut().for_each(|column| column.select(&kept));
    }
    table.columns = columns;
    Ok(table)
}

/// How many axes the array of a file has.
pub(crate) fn axes(path: &Path) -> Result<usize> {
    Ok(Header::read(path)?.shape.len())
}

/// The file itself as the corpus, where it holds what memory would and needs no narrowing.
fn mapped(
    source: &NpySource,
    options: &TableOptions,
    progress: ReadProgress<'_>,
) -> Result<Option<Table>> {
    let header = &source.header;
    let in_place = source.element == ElementType::F32
        && !header.big_endian
        && !header.fortran_order
        && cfg!(target_endian = "little")
        && header.offset.is_multiple_of(4)
        && options.missing == MissingValues::Error
        && !matches!(options.narrowing, NarrowingRule::Apply(_));
    if !in_place {
        return Ok(None);
    }
    let refused = |e| source.refused(e);
    let (offset, rows, dim) = (header.offset as usize, source.rows as usize, source.dim);
    let corpus = MappedCorpus::open(&source.path, offset, rows, dim as usize).map_err(refused)?;
    // What is wrong with a value is said where rows are read one by one.
    let Ok(judgement) = judge(&corpus, progress) else {
        return Ok(None);
    };
    let judging = options.narrowing == NarrowingRule::Judge;
    if judging && judgement.narrowing.is_some() {
        return Ok(None);
    }
    Ok(Some(Table {
        corpus: Box::new(corpus),
        columns: BTreeMap::new(),
        rows: None,
        narrowing: None,
        notes: if judging {
            notes(&judgement)
        } else {
            Vec::new()
        },
        element_type: source.element,
        vector_dims: Vec::new(),
        path: source.path.clone(),
        filtered: false,
        text_file: false,
    }))
}

fn judge(corpus: &MappedCorpus, progress: ReadProgress<'_>) -> metra::Result<NarrowingJudgement> {
    let mut ranges = ColumnRanges::new(corpus.dim());
    corpus.scan(0..corpus.len(), &mut |first, rows| {
        for (index, row) in rows.iter().enumerate() {
            check_finite(first + index as u64, row)?;
            ranges.update_f32(row);
        }
        progress(first + rows.len() as u64, Some(corpus.len()));
        Ok(())
    })?;
    Ok(ranges.judge())
}

/// Columns from companion files, each as long as the matrix.
fn companions(path: &Path, rows: u64, names: &[String]) -> Result<BTreeMap<String, Column>> {
    let mut columns = BTreeMap::new();
    for name in names {
        let file = Path::new(name);
        let column = if extension(file).as_deref() == Some("npy") {
            values(file)?
        } else {
            lines(file)?
        };
        if column.len() as u64 != rows {
            let problem = format!(
                "expected {rows} values, one for each row of {}, but found {}",
                path.display(),
                column.len()
            );
            return Err(Error::file(file, problem));
        }
        columns.insert(name.clone(), column);
    }
    Ok(columns)
}

/// A text file of one value per line.
fn lines(path: &Path) -> Result<Column> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let mut builder = ColumnBuilder::default();
    for (index, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(|e| Error::io(path, e))?;
        if builder.try_push(&Cell::from_field(line.trim())).is_err() {
            let place = Place::Line(index as u64 + 1);
            return Err(Error::row(
                path,
                place,
                "expected a value, but the line is empty",
            ));
        }
    }
    Ok(builder.finish())
}

/// A one-dimensional npy file of texts, or of whole numbers of any width.
fn values(path: &Path) -> Result<Column> {
    let header = Header::read(path)?;
    let [len] = header.shape[..] else {
        let problem = format!("expected one axis, but the shape is {:?}", header.shape);
        return Err(Error::file(path, problem));
    };
    let kind = header.kind();
    if kind.0 == 'U' {
        return texts(path, &header, len);
    }
    if !matches!(kind, ('i' | 'u', 1 | 2 | 4 | 8) | ('b', 1)) {
        let problem = format!(
            "expected whole numbers or texts, but found {:?}",
            header.descr
        );
        return Err(Error::file(path, problem));
    }
    let mut reader = BufReader::new(header.open(path)?);
    let mut builder = ColumnBuilder::default();
    for row in 0..len {
        let mut bytes = [0_u8; 8];
        let used = &mut bytes[..header.size];
        reader.read_exact(used).map_err(|e| Error::io(path, e))?;
        if header.big_endian {
            used.reverse();
        }
        let plain = u64::from_le_bytes(bytes);
        let unused = 64 - 8 * header.size as u32;
        let cell = match kind.0 {
            'b' => Cell::Bool(plain != 0),
            // Shifting up and down again spreads the sign over the unused bytes.
            'i' => Cell::Integer((plain << unused).cast_signed() >> unused),
            _ => match i64::try_from(plain) {
                Ok(value) => Cell::Integer(value),
                Err(_) => {
                    let problem = format!("expected a value below 2^63, but found {plain}");
                    return Err(Error::row(path, Place::Row(row), problem));
                }
            },
        };
        if builder.try_push(&cell).is_err() {
            return Err(Error::row(path, Place::Row(row), "expected a whole number"));
        }
    }
    Ok(builder.finish())
}

/// Texts of one length, four bytes a character, with zeros behind shorter ones.
fn texts(path: &Path, header: &Header, len: u64) -> Result<Column> {
    let mut reader = BufReader::new(header.open(path)?);
    let mut builder = ColumnBuilder::default();
    let mut bytes = vec![0_u8; header.size];
    for row in 0..len {
        let bad = |problem| Error::row(path, Place::Row(row), problem);
        (reader.read_exact(&mut bytes)).map_err(|e| Error::io(path, e))?;
        let mut text = String::new();
        for code in bytes.as_chunks::<4>().0 {
            let code = match header.big_endian {
                true => u32::from_be_bytes(*code),
                false => u32::from_le_bytes(*code),
            };
            if code != 0 {
                text.push(char::from_u32(code).ok_or_else(|| bad("expected a text"))?);
            }
        }
        if builder.try_push(&Cell::from_field(text.trim())).is_err() {
            return Err(bad("expected a text, but it is empty"));
        }
    }
    Ok(builder.finish())
}

/// What the first bytes of an npy file say; the values are known to be there.
struct Header {
    descr: String,
    size: usize,
    big_endian: bool,
    fortran_order: bool,
    shape: Vec<u64>,
    offset: u64,
}

impl Header {
    fn read(path: &Path) -> Result<Header> {
        let bad = |problem: String| Error::format(path, "npy", problem);
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        let length = file.metadata().map_err(|e| Error::io(path, e))?.len();
        let mut reader = BufReader::new(file);
        let mut magic = [0_u8; 8];
        let mut size = [0_u8; 4];
        reader
            .read_exact(&mut magic)
            .map_err(|_| bad("the file is too short".into()))?;
        if &magic[..6] != b"\x93NUMPY" {
            return Err(bad("it does not start with the npy signature".into()));
        }
        let width = match magic[6] {
            1 => 2,
            2 | 3 => 4,
            other => {
                return Err(bad(format!(
                    "expected version 1, 2 or 3, but found {other}"
                )));
            }
        };
        reader
            .read_exact(&mut size[..width])
            .map_err(|_| bad("the file is too short".into()))?;
        let size = u64::from(u32::from_le_bytes(size));
        let offset = 8 + width as u64 + size;
        if size > LONGEST_HEADER || offset > length {
            return Err(bad(format!(
                "the header is said to be {size} bytes long, but the file has {length} and a \
                 header at most {LONGEST_HEADER}"
            )));
        }
        let mut text = vec![0_u8; size as usize];
        reader
            .read_exact(&mut text)
            .map_err(|e| Error::io(path, e))?;
        let text = String::from_utf8(text).map_err(|_| bad("the header is not text".into()))?;
        let header = Header::parse(&text, offset).map_err(bad)?;
        let needed = header
            .shape
            .iter()
            .try_fold(header.size as u64, |product, axis| {
                product.checked_mul(*axis)
            })
            .and_then(|bytes| bytes.checked_add(offset));
        if needed.is_none_or(|needed| needed > length) {
            return Err(bad(format!(
                "the shape {:?} of {} needs {} bytes, but the file has {length}",
                header.shape,
                header.descr,
                needed.map_or("more than 2^64".into(), |n| n.to_string())
            )));
        }
        Ok(header)
    }

    /// The three entries of the dictionary, each found by its key.
    fn parse(text: &str, offset: u64) -> Result<Header, String> {
        let value = |key: &str| {
            [format!("'{key}'"), format!("\"{key}\"")]
                .iter()
                .find_map(|quoted| {
                    let rest = text[text.find(quoted)? + quoted.len()..].trim_start();
                    Some(rest.strip_prefix(':')?.trim_start())
                })
                .ok_or_else(|| format!("the header has no entry {key:?}"))
        };
        let descr = value("descr")?;
        let quote = descr.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let descr = quote
            .and_then(|quote| descr[1..].split_once(quote))
            .map(|(descr, _)| descr.to_owned())
            .ok_or("expected numbers of one type, but the type is a record")?;
        let order = value("fortran_order")?;
        let fortran_order = match (order.starts_with("True"), order.starts_with("False")) {
            (true, false) => true,
            (false, true) => false,
            _ => return Err("fortran_order is neither True nor False".into()),
        };
        let shape = value("shape")?
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(')'))
            .ok_or("the shape is not a tuple")?
            .0;
        let shape = shape
            .split(',')
            .map(str::trim)
            .filter(|axis| !axis.is_empty())
            // Python 2 wrote 3L for a long integer.
            .map(|axis| axis.trim_end_matches('L').parse::<u64>())
            .collect::<Result<Vec<u64>, _>>()
            .map_err(|_| format!("the shape ({shape}) is not made of numbers from 0 to 2^64"))?;
        let size = descr
            .get(2..)
            .and_then(|digits| digits.parse::<usize>().ok())
            .ok_or_else(|| format!("the type {descr:?} is unknown"))?;
        // Texts are said by their characters, of four bytes each.
        let size = match descr.get(1..2) {
            Some("U") => size.checked_mul(4).ok_or("the texts are too long")?,
            _ => size,
        };
        Ok(Header {
            size,
            big_endian: descr.starts_with('>'),
            fortran_order,
            shape,
            offset,
            descr,
        })
    }

    /// Letter and bytes of the type; a blank for what is no type code.
    fn kind(&self) -> (char, usize) {
        (self.descr.chars().nth(1).unwrap_or(' '), self.size)
    }

    fn element(&self) -> Option<ElementType> {
        Some(match self.kind() {
            ('f', 2) => ElementType::F16,
            ('f', 4) => ElementType::F32,
            ('f', 8) => ElementType::F64,
            ('i', 1) => ElementType::I8,
            ('i', 2) => ElementType::I16,
            ('i', 4) => ElementType::I32,
            ('u', 1) => ElementType::U8,
            ('u', 2) => ElementType::U16,
            _ => return None,
        })
    }

    /// The file at its first value.
    fn open(&self, path: &Path) -> Result<File> {
        let mut file = File::open(path).map_err(|e| Error::io(path, e))?;
        file.seek(SeekFrom::Start(self.offset))
            .map_err(|e| Error::io(path, e))?;
        Ok(file)
    }
}

struct NpySource {
    path: PathBuf,
    element: ElementType,
    rows: u64,
    dim: u64,
    header: Header,
}

impl NpySource {
    /// Bytes of rows `first..first + len`, brought into C order.
    fn read_rows(&self, file: &mut File, first: u64, len: u64, out: &mut Vec<u8>) -> Result<()> {
        let size = self.header.size;
        let failed = |e| Error::io(&self.path, e);
        out.resize((len * self.dim) as usize * size, 0);
        if !self.header.fortran_order {
            return file.read_exact(out).map_err(failed);
        }
        let mut column = vec![0; len as usize * size];
        for index in 0..self.dim {
            let at = self.header.offset + (index * self.rows + first) * size as u64;
            file.seek(SeekFrom::Start(at)).map_err(failed)?;
            file.read_exact(&mut column).map_err(failed)?;
            let places = out.chunks_exact_mut(self.dim as usize * size);
            for (row, value) in places.zip(column.chunks_exact(size)) {
                row[index as usize * size..][..size].copy_from_slice(value);
            }
        }
        Ok(())
    }
}

impl Source for NpySource {
    fn path(&self) -> &Path {
        &self.path
    }

    fn element(&self) -> ElementType {
        self.element
    }

    fn rows(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn number_name(&self, index: usize) -> String {
        index.to_string()
    }

    fn chunks(&self, visit: &mut dyn FnMut(&dyn Chunk) -> Result<()>) -> Result<()> {
        let mut file = self.header.open(&self.path)?;
        let at_once = (CHUNK_BYTES / (self.dim * self.header.size as u64)).clamp(1, 4096);
        let mut chunk = NpyChunk {
            source: self,
            first: 0,
            len: 0,
            bytes: Vec::new(),
        };
        while chunk.first < self.rows {
            chunk.len = at_once.min(self.rows - chunk.first);
            self.read_rows(&mut file, chunk.first, chunk.len, &mut chunk.bytes)?;
            if self.header.big_endian {
                let values = chunk.bytes.chunks_exact_mut(self.header.size);
                values.for_each(<[u8]>::reverse);
            }
            visit(&chunk)?;
            chunk.first += chunk.len;
        }
        Ok(())
    }
}

/// Rows as little-endian bytes in C order.
struct NpyChunk<'a> {
    source: &'a NpySource,
    first: u64,
    len: u64,
    bytes: Vec<u8>,
}

impl Chunk for NpyChunk<'_> {
    fn len(&self) -> usize {
        self.len as usize
    }

    fn number(&self, row: usize) -> u64 {
        self.first + row as u64
    }

    fn cell(&self, _column: usize, _row: usize) -> Cell<'_> {
        Cell::Null
    }

    fn vector(&self, row: usize, out: &mut Vector) -> Result<bool> {
        let width = self.source.dim as usize * self.source.header.size;
        let bytes = &self.bytes[row * width..(row + 1) * width];
        macro_rules! fill {
            ($type:ty) => {{
                // The chunks are arrays of the type's size, so no value is left out.
                let (values, _) = bytes.as_chunks::<{ size_of::<$type>() }>();
                out.fill(values.iter().map(|value| <$type>::from_le_bytes(*value)))
            }};
        }
        match self.source.element {
            ElementType::F16 => fill!(half::f16),
            ElementType::F32 => fill!(f32),
            ElementType::F64 | ElementType::Text => fill!(f64),
            ElementType::I8 => fill!(i8),
            ElementType::I16 => fill!(i16),
            ElementType::I32 => fill!(i32),
            ElementType::U8 => fill!(u8),
            ElementType::U16 => fill!(u16),
        }
        Ok(true)
    }
}
