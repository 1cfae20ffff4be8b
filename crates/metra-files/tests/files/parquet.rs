//! Parquet: types, nulls, filters, narrowing, the spool.

use crate::{options, read, refusal, texts, values};
use arrow_array::builder::{FixedSizeListBuilder, Float32Builder};
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Float64Array, Int8Array,
    Int64Array, LargeListArray, LargeStringArray, ListArray, RecordBatch, StringArray,
    StringViewArray, StructArray, UInt64Array,
};
use arrow_schema::{DataType, Field};
use half::f16;
use metra::data::Narrowing;
use metra_files::{Column, ElementType, MissingValues, NarrowingRule, TableOptions};
use parquet::arrow::ArrowWriter;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A Parquet file of these columns in a folder of its own.
fn file(columns: Vec<(&str, ArrayRef)>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let target = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(target, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    (folder, path)
}

fn vectors<T: ArrowPrimitiveType>(rows: &[&[T::Native]]) -> ArrayRef {
    let dim = rows[0].len() as i32;
    let rows = rows
        .iter()
        .map(|row| Some(row.iter().map(|v| Some(*v)).collect::<Vec<_>>()));
    Arc::new(FixedSizeListArray::from_iter_primitive::<T, _, _>(
        rows, dim,
    ))
}

fn pairs(count: usize) -> ArrayRef {
    let rows: Vec<[f32; 2]> = (0..count).map(|i| [i as f32, -(i as f32)]).collect();
    vectors::<Float32Type>(&rows.iter().map(|r| &r[..]).collect::<Vec<_>>())
}

/// A column of sparse vectors.
fn sparse(rows: &[(&[i64], &[f32])]) -> ArrayRef {
    let list = |item| Arc::new(Field::new_list_field(item, true));
    let indices = rows
        .iter()
        .map(|(indices, _)| Some(indices.iter().map(|i| Some(*i)).collect::<Vec<_>>()));
    let indices = ListArray::from_iter_primitive::<Int64Type, _, _>(indices);
    let values = rows
        .iter()
        .map(|(_, values)| Some(values.iter().map(|v| Some(*v)).collect::<Vec<_>>()));
    let values = ListArray::from_iter_primitive::<Float32Type, _, _>(values);
    let fields = [
        ("indices", DataType::List(list(DataType::Int64))),
        ("values", DataType::List(list(DataType::Float32))),
    ];
    let fields = fields.map(|(name, kind)| Arc::new(Field::new(name, kind, true)));
    let arrays: [ArrayRef; 2] = [Arc::new(indices), Arc::new(values)];
    Arc::new(StructArray::from(
        fields.into_iter().zip(arrays).collect::<Vec<_>>(),
    ))
}

#[test]
fn sparse_vectors_are_read() {
    let kinds: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "a"]));
    let rows = sparse(&[(&[4, 0], &[0.5, 2.0]), (&[], &[]), (&[1], &[-1.0])]);
    let (_folder, path) = file(vec![("words", rows), ("kind", kinds)]);
    let table = read(&path, &options(&["kind"], &["kind=a"])).unwrap();
    // The largest index says how many dimensions there are.
    let expected = [2.0, 0.0, 0.0, 0.0, 0.5, 0.0, -1.0, 0.0, 0.0, 0.0];
    assert_eq!(values(&*table.corpus), expected);
    assert!(table.corpus.sparse_row(1).is_some() && table.narrowing.is_none());
    for (rows, words) in [
        (sparse(&[(&[1, 1], &[1.0, 2.0])]), "the index 1 twice"),
        (sparse(&[(&[1, 2], &[1.0])]), "2 indices, but 1 values"),
        (sparse(&[(&[-1, 2], &[1.0, 1.0])]), "the index -1"),
        (sparse(&[(&[1 << 40], &[1.0])]), "indices below 262144"),
        (sparse(&[(&[1], &[f32::INFINITY])]), "finite"),
    ] {
        let (_folder, path) = file(vec![("vector", rows)]);
        let text = refusal(&path, &options(&[], &[]));
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn columns_of_lists_are_several_vectors() {
    let title = vectors::<Float32Type>(&[&[1.0, 2.0], &[3.0, 4.0], &[5.0, 6.0]]);
    let lists = [
        Some(vec![Some(7.0), None, Some(9.0)]),
        None,
        Some(vec![Some(0.5); 3]),
    ];
    let body: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists));
    let (_folder, path) = file(vec![("title", title), ("body", body)]);
    let wanted = |vector: &str, missing| TableOptions {
        vector: Some(vector.to_owned()),
        missing,
        ..options(&[], &[])
    };
    let table = read(&path, &wanted("body,title", MissingValues::Skip)).unwrap();
    assert_eq!(table.vector_dims, [3, 2]);
    assert_eq!(values(&*table.corpus), [0.5, 0.5, 0.5, 5.0, 6.0]);
    // The same one twice, where a query asks two vectors of the items.
    let table = read(&path, &wanted("title,title", MissingValues::Error)).unwrap();
    assert_eq!(table.vector_dims, [2, 2]);
    assert_eq!(values(&*table.corpus)[..4], [1.0, 2.0, 1.0, 2.0]);
    assert_eq!(
        read(&path, &wanted("title", MissingValues::Error))
            .unwrap()
            .vector_dims,
        [0; 0]
    );
    let text = refusal(&path, &wanted("title,body", MissingValues::Error));
    assert!(
        text.contains("title,body[3]") && text.contains("missing"),
        "{text}"
    );
    // As many numbers in all, but not of the same vectors.
    let uneven = |lists: [usize; 2]| -> ArrayRef {
        let lists = lists.map(|length| Some(vec![Some(1.0); length]));
        Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(lists))
    };
    let (_folder, path) = file(vec![("a", uneven([2, 3])), ("b", uneven([3, 2]))]);
    let text = refusal(&path, &wanted("a,b", MissingValues::Error));
    assert!(
        text.contains("dimensions 2, 3 as in the rows before, but found 3, 2"),
        "{text}"
    );
    let (_folder, path) = file(vec![("a", uneven([2, 2])), ("b", uneven([0, 0]))]);
    let text = refusal(&path, &wanted("a,b", MissingValues::Error));
    assert!(text.contains("at least 1 number, but found 2, 0"), "{text}");
}

#[test]
fn a_column_for_every_number_is_read() {
    let (_folder, path) = file(vec![
        ("age", Arc::new(Int64Array::from(vec![30, 41])) as ArrayRef),
        (
            "price",
            Arc::new(Float64Array::from(vec![Some(0.5), None])) as ArrayRef,
        ),
        (
            "kind",
            Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef,
        ),
    ]);
    let wanted = |vector: &str, missing| TableOptions {
        vector: Some(vector.to_owned()),
        missing,
        ..options(&["kind"], &[])
    };
    for (vector, expected) in [("*", [30.0, 0.5]), ("price,age", [0.5, 30.0])] {
        let table = read(&path, &wanted(vector, MissingValues::Skip)).unwrap();
        assert_eq!(values(&*table.corpus), expected);
        assert_eq!(table.element_type, ElementType::F64);
        assert_eq!(texts(&table, "kind"), ["a"]);
    }
    let message = refusal(&path, &wanted("*", MissingValues::Error));
    assert!(message.contains("row 1, column price: "), "{message}");
    let message = refusal(&path, &options(&[], &[]));
    assert!(
        message.contains("the columns are \"age\", \"price\""),
        "{message}"
    );
}

#[test]
fn a_small_file_does_not_take_much_memory() {
    // Twenty million equal numbers in one list: a few hundred bytes of runs.
    let mut lists = arrow_array::builder::ListBuilder::new(Float32Builder::new());
    lists.values().append_slice(&vec![0.0; 20_000_000]);
    lists.append(true);
    let (_folder, path) = file(vec![("vector", Arc::new(lists.finish()))]);
    let length = std::fs::metadata(&path).unwrap().len();
    assert!(length < 20_000, "{length}");
    let little = TableOptions {
        memory: 1,
        ..TableOptions::default()
    };
    let message = refusal(&path, &little);
    assert!(
        message.contains("claim 20000000 values of lists"),
        "{message}"
    );
    // A width that no vector has.
    let wide = vectors::<Float32Type>(&[&vec![0.0; 300_000]]);
    let (_folder, path) = file(vec![("vector", wide)]);
    let message = refusal(&path, &TableOptions::default());
    assert!(
        message.contains("at most 262144 dimensions, but found 300000"),
        "{message}"
    );
}

#[test]
fn every_number_type_is_read() {
    let h = f16::from_f32;
    for (array, element) in [
        (
            vectors::<Float16Type>(&[&[h(1.0), h(2.0)], &[h(3.0), h(5.0)]]),
            ElementType::F16,
        ),
        (
            vectors::<Float32Type>(&[&[1.0, 2.0], &[3.0, 5.0]]),
            ElementType::F32,
        ),
        (
            vectors::<Float64Type>(&[&[1.0, 2.0], &[3.0, 5.0]]),
            ElementType::F64,
        ),
        (vectors::<Int8Type>(&[&[1, 2], &[3, 5]]), ElementType::I8),
        (vectors::<Int16Type>(&[&[1, 2], &[3, 5]]), ElementType::I16),
        (vectors::<Int32Type>(&[&[1, 2], &[3, 5]]), ElementType::I32),
        (vectors::<UInt8Type>(&[&[1, 2], &[3, 5]]), ElementType::U8),
        (vectors::<UInt16Type>(&[&[1, 2], &[3, 5]]), ElementType::U16),
    ] {
        let (_folder, path) = file(vec![("vector", array)]);
        let table = read(&path, &TableOptions::default()).unwrap();
        assert_eq!(table.element_type, element);
        assert_eq!(values(&*table.corpus), [1.0, 2.0, 3.0, 5.0], "{element}");
        assert!(table.narrowing.is_none() && table.notes.is_empty() && table.rows.is_none());
    }
}

#[test]
fn lists_of_one_length_are_vectors() {
    let rows = || (0..3).map(|i| Some(vec![Some(i as f32), Some(1.0)]));
    let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows()));
    let large: ArrayRef = Arc::new(LargeListArray::from_iter_primitive::<Float32Type, _, _>(
        rows(),
    ));
    for array in [list, large] {
        let (_folder, path) = file(vec![("vector", array)]);
        let table = read(&path, &TableOptions::default()).unwrap();
        assert_eq!(values(&*table.corpus), [0.0, 1.0, 1.0, 1.0, 2.0, 1.0]);
        assert_eq!(table.notes, ["1 column of the vectors is constant"]);
    }
}

#[test]
fn lists_of_differing_length_name_the_row() {
    let rows = [vec![1.0, 2.0], vec![3.0, 4.0], vec![5.0]];
    let rows = rows.map(|row| Some(row.into_iter().map(Some).collect::<Vec<_>>()));
    let list = ListArray::from_iter_primitive::<Float32Type, _, _>(rows);
    let (_folder, path) = file(vec![("vector", Arc::new(list))]);
    assert_eq!(
        refusal(&path, &TableOptions::default()),
        "t.parquet: row 2: expected a vector of dimension 2 as in the rows before, but found 1"
    );
    let empty = ListArray::from_iter_primitive::<Float32Type, _, _>([Some(Vec::new())]);
    let (_folder, path) = file(vec![("vector", Arc::new(empty))]);
    assert!(refusal(&path, &TableOptions::default()).contains("row 0: expected a vector of at"));
}

#[test]
fn missing_vectors_and_numbers_are_named() {
    let mut builder = FixedSizeListBuilder::new(Float32Builder::new(), 2);
    builder.values().append_slice(&[1.0, 2.0]);
    builder.append(true);
    builder.values().append_nulls(2);
    builder.append(false);
    let (_folder, path) = file(vec![("e", Arc::new(builder.finish()))]);
    assert_eq!(
        refusal(&path, &TableOptions::default()),
        "t.parquet: row 1, column e: expected a value, but it is missing (an empty field, NaN or null); rows with missing values can be left out (--missing skip)"
    );
    let rows = [
        Some(vec![Some(1.0), Some(2.0)]),
        Some(vec![Some(1.0), None]),
    ];
    let list = ListArray::from_iter_primitive::<Float32Type, _, _>(rows);
    let keep = Int64Array::from(vec![1, 0]);
    let (_folder, path) = file(vec![("vector", Arc::new(list)), ("keep", Arc::new(keep))]);
    assert_eq!(
        refusal(&path, &TableOptions::default()),
        "t.parquet: row 1, column vector[1]: expected a value, but it is missing (an empty field, NaN or null); rows with missing values can be left out (--missing skip)"
    );
    // A row that a filter drops need not be whole.
    assert_eq!(
        read(&path, &options(&[], &["keep=1"]))
            .unwrap()
            .corpus
            .len(),
        1
    );
}

#[test]
fn bad_values_name_file_row_and_column() {
    for (array, expected) in [
        (
            vectors::<Float32Type>(&[&[1.0, 2.0], &[1.0, f32::NAN]]),
            "t.parquet: row 1, column vector[1]: expected a value, but it is missing (an empty field, NaN or null); rows with missing values can be left out (--missing skip)",
        ),
        (
            vectors::<Float16Type>(&[&[f16::INFINITY, f16::ONE]]),
            "t.parquet: row 0, column vector[0]: expected a finite number, but found inf",
        ),
        (
            vectors::<Float64Type>(&[&[1.0], &[f64::NAN]]),
            "t.parquet: row 1, column vector[0]: expected a value, but it is missing (an empty field, NaN or null); rows with missing values can be left out (--missing skip)",
        ),
        (
            vectors::<Float64Type>(&[&[1.0, 2.0], &[1e200, 2.0]]),
            "t.parquet: row 1, column vector[0]: expected a value within ±3.4028235e38 (vectors \
             are kept as f32), but found 1e200",
        ),
    ] {
        let (_folder, path) = file(vec![("vector", array)]);
        assert_eq!(refusal(&path, &TableOptions::default()), expected);
        let unjudged = TableOptions {
            narrowing: NarrowingRule::None,
            ..TableOptions::default()
        };
        assert_eq!(refusal(&path, &unjudged), expected);
    }
}

#[test]
fn an_offset_is_shifted_and_noted_in_memory_and_in_a_spool() {
    let wide = vectors::<Float64Type>(&[&[1e8, 0.0], &[1e8 + 1.0, 1.0], &[1e8 + 2.0, 2.0]]);
    let exact = vectors::<Float32Type>(&[&[1e7, 0.0], &[1e7 + 1.0, 1.0], &[1e7 + 2.0, 2.0]]);
    for (array, shift) in [(wide, 1e8 + 1.0), (exact, 1e7 + 1.0)] {
        let (folder, path) = file(vec![("vector", array)]);
        for memory in [1 << 20, 4] {
            let options = TableOptions {
                memory,
                cache_dir: folder.path().into(),
                ..TableOptions::default()
            };
            let table = read(&path, &options).unwrap();
            assert_eq!(values(&*table.corpus), [-1.0, 0.0, 0.0, 1.0, 1.0, 2.0]);
            let narrowing = table.narrowing.clone().unwrap();
            assert_eq!((narrowing.shift[0], narrowing.scale), (shift, 1.0));
            assert!(table.notes[0].starts_with("1 column of the vectors is shifted"));
        }
        // What a model prescribes is applied and not judged.
        let prescribed = Narrowing {
            shift: vec![shift, 1.0],
            scale: 2.0,
        };
        let apply = |narrowing| TableOptions {
            narrowing,
            ..TableOptions::default()
        };
        let table = read(&path, &apply(NarrowingRule::Apply(prescribed.clone()))).unwrap();
        assert_eq!(values(&*table.corpus), [-2.0, -2.0, 0.0, 0.0, 2.0, 2.0]);
        assert_eq!(table.narrowing, Some(prescribed));
        let table = read(&path, &apply(NarrowingRule::None)).unwrap();
        assert_eq!(table.corpus.view().unwrap().row(0)[0], (shift - 1.0) as f32);
        let short = Narrowing {
            shift: vec![0.0],
            scale: 1.0,
        };
        let message = refusal(&path, &apply(NarrowingRule::Apply(short)));
        assert!(
            message.contains("expected vectors of dimension 1"),
            "{message}"
        );
    }
}

#[test]
fn a_spool_holds_the_same_values_and_goes_away() {
    let count = 5000;
    let label = Int64Array::from_iter_values(0..count);
    let (folder, path) = file(vec![
        ("label", Arc::new(label)),
        ("vector", pairs(count as usize)),
    ]);
    let cache = tempfile::tempdir().unwrap();
    for filters in [&[][..], &["label!=7"][..]] {
        let all = options(&["label"], filters);
        let expected = read(&path, &all).unwrap();
        let spooling = TableOptions {
            memory: 10_000,
            cache_dir: cache.path().into(),
            ..all
        };
        let spooled = read(&path, &spooling).unwrap();
        assert_eq!(values(&*spooled.corpus), values(&*expected.corpus));
        assert_eq!(spooled.columns, expected.columns);
        assert_eq!(spooled.rows, expected.rows);
        assert!(
            spooled.notes[0].starts_with("spooled "),
            "{:?}",
            spooled.notes
        );
        drop(spooled);
        assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 0);
    }
    let nowhere = TableOptions {
        memory: 0,
        cache_dir: folder.path().join("none"),
        ..TableOptions::default()
    };
    assert!(refusal(&path, &nowhere).contains("none"));
}

#[test]
fn columns_of_many_types_print_plainly() {
    let dictionary: DictionaryArray<Int8Type> = vec!["x", "y", "x"].into_iter().collect();
    let (_folder, path) = file(vec![
        ("vector", pairs(3)),
        (
            "bool",
            Arc::new(BooleanArray::from(vec![true, false, true])),
        ),
        ("i8", Arc::new(Int8Array::from(vec![-1, 0, 1]))),
        ("u64", Arc::new(UInt64Array::from(vec![7, 8, 9]))),
        ("float", Arc::new(Float64Array::from(vec![1.0, 2.0, -3.0]))),
        ("utf8", Arc::new(StringArray::from(vec!["a", "b", "a"]))),
        (
            "large",
            Arc::new(LargeStringArray::from(vec!["a", "b", "a"])),
        ),
        ("view", Arc::new(StringViewArray::from(vec!["a", "b", "a"]))),
        ("dictionary", Arc::new(dictionary)),
    ]);
    let all = [
        "bool",
        "i8",
        "u64",
        "float",
        "utf8",
        "large",
        "view",
        "dictionary",
    ];
    let table = read(&path, &options(&all, &[])).unwrap();
    assert_eq!(texts(&table, "bool"), ["true", "false", "true"]);
    assert_eq!(table.columns["i8"], Column::Integers(vec![-1, 0, 1]));
    assert_eq!(texts(&table, "u64"), ["7", "8", "9"]);
    assert_eq!(texts(&table, "float"), ["1", "2", "-3"]);
    for column in ["utf8", "large", "view"] {
        assert_eq!(texts(&table, column), ["a", "b", "a"]);
    }
    assert_eq!(texts(&table, "dictionary"), ["x", "y", "x"]);
    for filter in ["bool=true", "utf8=a", "dictionary!=y", "view=a"] {
        let kept = read(&path, &options(&["i8"], &[filter])).unwrap();
        assert_eq!(kept.rows, Some(vec![0, 2]), "{filter}");
        assert_eq!(kept.columns["i8"], Column::Integers(vec![-1, 1]));
        assert_eq!(values(&*kept.corpus), [0.0, 0.0, 2.0, -2.0]);
    }
}

#[test]
fn columns_that_are_no_names_are_refused() {
    let (_folder, path) = file(vec![
        ("vector", pairs(2)),
        (
            "missing",
            Arc::new(StringArray::from(vec![Some("a"), None])),
        ),
        ("fraction", Arc::new(Float64Array::from(vec![1.0, 0.5]))),
    ]);
    assert_eq!(
        refusal(&path, &options(&["missing"], &[])),
        "t.parquet: row 1, column missing: expected a value, but it is missing (an empty field, NaN or null); rows with missing values can be left out (--missing skip)"
    );
    assert_eq!(
        refusal(&path, &options(&["fraction"], &[])),
        "t.parquet: row 1, column fraction: expected a whole number or a text, but found 0.5"
    );
    assert!(refusal(&path, &options(&["vector"], &[])).contains("expected integers, booleans"));
    assert_eq!(
        refusal(&path, &options(&["label"], &[])),
        "t.parquet: expected a column \"label\", but found only \"vector\", \"missing\", \
         \"fraction\""
    );
    assert!(refusal(&path, &options(&[], &["split=a"])).contains("expected a column \"split\""));
}

#[test]
fn the_vector_column_is_found_or_asked_for() {
    let (_folder, path) = file(vec![
        ("id", Arc::new(Int64Array::from(vec![1]))),
        ("e", pairs(1)),
    ]);
    assert_eq!(
        read(&path, &TableOptions::default()).unwrap().corpus.dim(),
        2
    );
    let named = |name: &str| TableOptions {
        vector: Some(name.into()),
        ..TableOptions::default()
    };
    assert!(refusal(&path, &named("x")).contains("expected a column \"x\""));
    assert!(refusal(&path, &named("id")).contains("column \"id\": expected lists of"));
    let (_folder, path) = file(vec![("a", pairs(1)), ("b", pairs(1))]);
    let message = refusal(&path, &TableOptions::default());
    assert!(
        message.contains("the columns are \"a\", \"b\""),
        "{message}"
    );
    assert_eq!(read(&path, &named("b")).unwrap().corpus.dim(), 2);
    let (_folder, path) = file(vec![("vector", vectors::<UInt32Type>(&[&[1]]))]);
    assert!(refusal(&path, &TableOptions::default()).contains("expected lists of f16"));
}

#[test]
fn nothing_kept_says_why() {
    let split = StringArray::from(vec!["train", "test"]);
    let (_folder, path) = file(vec![("vector", pairs(2)), ("split", Arc::new(split))]);
    assert_eq!(
        refusal(&path, &options(&[], &["split=dev"])),
        "t.parquet: no row of 2 passes the filter split=dev; split has the values test, train"
    );
    let (_folder, path) = file(vec![("vector", pairs(1).slice(0, 0))]);
    let message = refusal(&path, &TableOptions::default());
    assert!(
        message.contains("expected rows, but the file has none"),
        "{message}"
    );
}

#[test]
fn ids_are_looked_up_and_must_differ() {
    let id = StringArray::from(vec!["x", "a", "b", "a"]);
    let (_folder, path) = file(vec![("vector", pairs(4)), ("id", Arc::new(id))]);
    let table = read(&path, &options(&["id"], &["id!=x"])).unwrap();
    let message = table.index("id").unwrap_err().to_string();
    assert!(
        message.ends_with("row 3, column id: expected every id once, but \"a\" is also in row 1"),
        "{message}"
    );
    assert!(table.index("none").is_err());
    let table = read(&path, &options(&["id"], &["id!=a"])).unwrap();
    assert_eq!(table.index("id").unwrap()["b"], 1);
}

#[test]
fn damaged_files_are_errors() {
    let (_folder, path) = file(vec![("vector", pairs(300))]);
    let whole = std::fs::read(&path).unwrap();
    // A fixed sequence of damages, so that a failure comes again.
    let mut state = 1_u64;
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..4 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] = (state >> 20) as u8;
        }
        std::fs::write(&path, &bytes).unwrap();
        // Damaged values may still be values: only a panic would be wrong.
        let _ = read(&path, &TableOptions::default());
    }
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(refusal(&path, &TableOptions::default()).contains("cannot be read as Parquet"));
    std::fs::write(&path, "text").unwrap();
    assert!(refusal(&path, &TableOptions::default()).contains("cannot be read as Parquet"));
}
