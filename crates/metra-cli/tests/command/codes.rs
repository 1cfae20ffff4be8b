//! Items as codes: trained for, written, searched and chosen by bytes.

use crate::folder::{Folder, digits};
use metra::model::Model;

/// The numbers of an npy file of bytes, row after row.
fn npy_bytes(bytes: &[u8], element: &str) -> Vec<u8> {
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]])) + 10;
    let text = String::from_utf8(bytes[10..header].to_vec()).unwrap();
    assert!(text.contains(&format!("'{element}'")), "{text}");
    bytes[header..].to_vec()
}

#[test]
fn bits_are_trained_for_written_and_searched() {
    let (folder, digits) = (Folder::new(), digits());
    let train = "--label label --method supcon --rank 24 --set steps=60 --code bits --seed 3";
    folder.good(&format!("train {digits} {train} -o m.safetensors"), &[]);
    let model = Model::load(folder.path("m.safetensors")).unwrap();
    assert_eq!(model.chain.item_bytes(), 3);
    let shown = folder.json("inspect m.safetensors", &[]);
    assert_eq!(
        (shown["code"].as_str(), shown["item_bytes"].as_u64()),
        (Some("bits"), Some(3))
    );
    assert_eq!(shown["origin"]["parameters"]["code"], "bits");

    let embed = format!("embed m.safetensors {digits}");
    let refused = folder.refused(&format!("{embed} -o x.npy"), &[]);
    assert!(refused.contains("--side"), "{refused}");
    let (said, _) = folder.good(&format!("{embed} --side item -o codes.npy"), &[]);
    assert!(said.contains("bits codes of 3 bytes"), "{said}");
    folder.good(&format!("{embed} --side item --decoded -o items.npy"), &[]);
    folder.good(&format!("{embed} --side query -o queries.npy"), &[]);
    let codes = npy_bytes(&folder.bytes("codes.npy"), "|u1");
    let (items, queries) = (folder.read("items.npy"), folder.read("queries.npy"));
    assert_eq!((items.dim(), codes.len()), (24, items.len() * 3));
    for (item, code) in items.rows().iter().zip(codes.chunks_exact(3)) {
        for (place, value) in item.iter().enumerate() {
            let is_set = code[place / 8] >> (7 - place % 8) & 1 == 1;
            assert_eq!(is_set, *value > 0.0);
        }
    }
    // Queries stay as they are: what the signs of a row are is what its query's signs are.
    let same = (items.rows().iter().zip(queries.rows().iter())).all(|(item, query)| {
        item.iter()
            .zip(query)
            .all(|(a, b)| (*a > 0.0) == (*b > 0.0))
    });
    assert!(
        same && queries
            .values()
            .iter()
            .any(|v| *v != items.values()[0].abs())
    );

    // The nearest by the command is the nearest by products with signs.
    let found = folder.json(
        &format!("search m.safetensors {digits} --query {digits} -k 1"),
        &[],
    );
    let product = |item: usize, query: usize| -> f32 {
        let pairs = items.row(item).iter().zip(queries.row(query));
        pairs.map(|(a, b)| a * b).sum()
    };
    for query in [0, 17, 900] {
        let nearest = &found[query]["items"][0];
        let row: usize = nearest["item"].as_str().unwrap().parse().unwrap();
        let largest = (0..items.len()).map(|item| product(item, query));
        let (own, largest) = (product(row, query), largest.fold(f32::MIN, f32::max));
        assert!((own - largest).abs() < 1e-3 * own.abs(), "{own} {largest}");
    }
}

#[test]
fn a_scale_per_vector_has_a_column_of_its_own() {
    let (folder, digits) = (Folder::new(), digits());
    let train = "--label label --method lda --rank 6 --score euclid --code int8";
    folder.good(&format!("train {digits} {train} -o m.safetensors"), &[]);
    let embed = format!("embed m.safetensors {digits} --side item");
    let refused = folder.refused(&format!("{embed} -o codes.npy"), &[]);
    assert!(refused.contains("Parquet"), "{refused}");
    folder.good(&format!("{embed} --keep label -o codes.parquet"), &[]);
    folder.good(&format!("{embed} --decoded -o items.npy"), &[]);
    let options = metra_files::TableOptions {
        columns: vec!["label".into()],
        ..Default::default()
    };
    let table = metra_files::read_table(&folder.path("codes.parquet"), &options, &mut |_, _| {});
    let table = table.unwrap();
    assert_eq!(
        (table.corpus.dim(), table.element_type.to_string()),
        (6, "i8".to_owned())
    );
    let (items, whole) = (folder.read("items.npy"), folder.read("codes.parquet"));
    for (item, whole) in items.rows().iter().zip(whole.rows().iter()) {
        let largest = item.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
        for (value, whole) in item.iter().zip(whole) {
            assert!((value - whole * largest / 127.0).abs() < 1e-4 * largest);
        }
    }
}

#[test]
fn budgets_of_bytes_end_in_a_table_a_page_and_models() {
    let (folder, digits) = (Folder::new(), digits());
    let line = format!(
        "compress {digits} --label label --methods lda --bytes 4,16 --rescore 20 --report r.html -o models"
    );
    let found = folder.json(&line, &[]);
    assert_eq!(found["base_bytes"], 256);
    let rows = found["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["recommended"] == true));
    assert!(
        rows.iter()
            .any(|row| row["learned"] == true && row["rescored"] == false)
    );
    for row in rows {
        let budget = row["budgets"][0].as_u64().unwrap();
        assert!(row["item_bytes"].as_u64().unwrap() <= budget);
        assert_eq!(row["measures"][0]["measure"], "map");
    }
    for budget in [4, 16] {
        let path = folder.path(&format!("models/{budget}.safetensors"));
        assert!(Model::load(path).unwrap().chain.item_bytes() <= budget);
    }
    let page = String::from_utf8(folder.bytes("r.html")).unwrap();
    let sentence = found["recommendation"].as_str().unwrap();
    assert!(
        page.contains(sentence) && page.contains("<svg"),
        "{sentence}"
    );
    // The same again, as text.
    let (text, _) = folder.good(&line, &[]);
    assert!(
        text.contains(sentence) && text.contains("95 % interval"),
        "{text}"
    );
}

#[test]
fn without_labels_neighbours_are_counted() {
    let (folder, digits) = (Folder::new(), digits());
    let found = folder.json(&format!("compress {digits} --bytes 8,64 --rescore 50"), &[]);
    assert_eq!(
        (found["measure"].as_str(), found["base_value"].as_f64()),
        (Some("r@10"), Some(1.0))
    );
    let rows = found["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["unseen"].is_null()));
    let refused = folder.refused(&format!("compress {digits} --methods supcon"), &[]);
    assert!(refused.contains("--label"), "{refused}");
}

#[test]
fn codes_that_do_not_exist_or_fit_are_refused() {
    let (folder, digits) = (Folder::new(), digits());
    let train = format!("train {digits} --label label --method pca --rank 8");
    let output = folder.run(&format!("{train} --code bit"), &[]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && message.contains("bits"),
        "{message}"
    );
    let refused = folder.refused(&format!("{train} --set code=pq:9"), &[]);
    assert!(refused.contains("at most 8"), "{refused}");
    let refused = folder.refused(&format!("compress {digits} --label label --bytes 0"), &[]);
    assert!(refused.contains("at least 1"), "{refused}");
    // A code is for the score that it was made for, and re-ranking compares queries with each other.
    folder.good(&format!("{train} --code itq -o m.safetensors"), &[]);
    let eval = format!("eval m.safetensors {digits} --label label");
    folder.good(&eval, &[]);
    let refused = folder.refused(&format!("{eval} --rerank default"), &[]);
    assert!(refused.contains("coded items"), "{refused}");
    // What would leave the code out is not exported.
    let refused = folder.refused("export m.safetensors --side item -o map.npy", &[]);
    assert!(refused.contains("codes"), "{refused}");
}

#[test]
fn an_index_holds_codes_and_rescores() {
    let (folder, digits) = (Folder::new(), digits());
    let train = "--label label --method supcon --rank 32 --set steps=60 --seed 3";
    let train = format!("train {digits} {train}");
    folder.good(&format!("{train} --code bits -o m.safetensors"), &[]);
    let index = format!("index m.safetensors {digits} --label label");
    let done = folder.json(&format!("{index} -o codes"), &[]);
    let items = done["items"].as_u64().unwrap();
    assert_eq!(done["code"], "bits");
    let size = |path: &str| folder.path(path).metadata().unwrap().len();
    assert_eq!(size("codes/codes.u8"), 4 * items);
    assert!(!folder.path("codes/vectors.f32").exists());
    folder.good(&format!("{index} --rescore -o both"), &[]);
    assert_eq!(size("both/vectors.f32"), 4 * 32 * items);

    let search = |place: &str, more: &str| {
        let query = format!("search m.safetensors {place} --query {digits} -k 5 {more}");
        folder.json(&query, &[])
    };
    let scores = |found: &serde_json::Value| -> Vec<f64> {
        let queries = found.as_array().unwrap().iter();
        let items = queries.flat_map(|query| query["items"].as_array().unwrap());
        items
            .map(|item| item["dissimilarity"].as_f64().unwrap())
            .collect()
    };
    // By the file and by the index, all items are seen as their codes stand for them.
    let (in_file, exact) = (search(&digits, ""), search("codes", "--exact"));
    assert_eq!(scores(&in_file), scores(&exact));
    let usual = search("codes", "");
    let same = (scores(&usual).iter().zip(scores(&exact)))
        .filter(|(a, b)| **a == *b)
        .count();
    assert!(same as f64 > 0.9 * scores(&exact).len() as f64, "{same}");
    // A row is its own nearest by the vectors before their code, at distance 0 or cosine 1.
    let rescored = search("both", "--rescore 200");
    let first = |query: &serde_json::Value| query["items"][0]["item"] == query["query"];
    let own = rescored
        .as_array()
        .unwrap()
        .iter()
        .filter(|query| first(query))
        .count();
    assert!(own as u64 > items * 9 / 10, "{own}");

    for (arguments, said) in [
        (
            format!("{index} --approximate -o x"),
            "its own copy of the vectors",
        ),
        (
            format!("search m.safetensors codes --query {digits} --effort 9"),
            "--rescore",
        ),
        (
            format!("{index} --rescore --add-to codes -o x"),
            "no vectors to rescore by",
        ),
    ] {
        let refused = folder.refused(&arguments, &[]);
        assert!(refused.contains(said), "{refused}");
    }
    folder.good(&format!("{train} -o plain.safetensors"), &[]);
    let refused = folder.refused(
        &format!("index plain.safetensors {digits} --rescore -o x"),
        &[],
    );
    assert!(refused.contains("has none"), "{refused}");
    assert!(!folder.path("x").exists());
}

#[test]
fn the_first_dimensions_of_nested_training_serve_by_themselves() {
    let (folder, digits) = (Folder::new(), digits());
    let mut values = Vec::new();
    for nested in [0, 4] {
        let train = "--label label --method supcon --rank 32 --set steps=150 --seed 3 --score cosine --code bits";
        let train =
            format!("train {digits} {train} --set nested={nested} -o m{nested}.safetensors");
        folder.good(&train, &[]);
        let shorten =
            format!("shorten m{nested}.safetensors --dimensions 8 -o s{nested}.safetensors");
        let done = folder.json(&shorten, &[]);
        assert_eq!(
            (done["dimensions"].as_u64(), done["item_bytes"].as_u64()),
            (Some(8), Some(1))
        );
        let whole = Model::load(folder.path(&format!("s{nested}.safetensors"))).unwrap();
        assert!(whole.origin.held_out.is_none() && whole.origin.parameters["rank"] == "8");
        let found = folder.json(
            &format!("eval s{nested}.safetensors {digits} --label label --measures map"),
            &[],
        );
        values.push(found["measures"]["map"].as_f64().unwrap());
    }
    assert!(values[1] > values[0] + 0.05, "{values:?}");
    let refused = folder.refused(
        "shorten m4.safetensors --dimensions 33 -o x.safetensors",
        &[],
    );
    assert!(refused.contains("1 to 32"), "{refused}");
    let opq = "--label label --method lda --rank 8 --code opq:4 -o p.safetensors";
    folder.good(&format!("train {digits} {opq}"), &[]);
    let refused = folder.refused("shorten p.safetensors --dimensions 4 -o x.safetensors", &[]);
    assert!(refused.contains("belong together"), "{refused}");
}
