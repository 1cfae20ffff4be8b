//! Changing the embedding model: files that are matched by id, ways compared, maps that are written and used.

use crate::folder::{Folder, number, texts};
use metra::internal::Stream;
use metra::linalg::RowBuf;

const CLASSES: usize = 20;
const ITEMS: usize = 240;

/// Rows of classes in five dimensions: `old` keeps two of them beside one of noise, `new` all five. The files have the rows in
/// different order, and each one row that the other lacks. The first sixty rows are also in files of queries.
fn spaces(folder: &Folder) {
    let mut stream = Stream::new(9, "migrate test", 0);
    let centres: Vec<[f64; 5]> = (0..CLASSES)
        .map(|_| std::array::from_fn(|_| stream.normal()))
        .collect();
    let rows: Vec<[f64; 6]> = (0..ITEMS)
        .map(|row| {
            std::array::from_fn(|dim| match centres[row % CLASSES].get(dim) {
                Some(centre) => centre + 0.3 * stream.normal(),
                None => stream.normal(),
            })
        })
        .collect();
    let write = |name: &str, order: &[usize], dims: &[usize]| {
        let values = order
            .iter()
            .flat_map(|row| dims.iter().map(|dim| rows[*row][*dim] as f32));
        let vectors = RowBuf::from_values(values.collect(), dims.len()).unwrap();
        let columns = [
            (
                "id",
                texts(order.len(), |place| format!("row-{}", order[place])),
            ),
            (
                "label",
                texts(order.len(), |place| format!("c{}", order[place] % CLASSES)),
            ),
        ];
        folder.write_parquet(name, &vectors, &columns);
    };
    let (old, new): (Vec<usize>, Vec<usize>) =
        ((1..ITEMS).collect(), (0..ITEMS - 1).rev().collect());
    let (narrow, wide) = ([0, 1, 5], [0, 1, 2, 3, 4]);
    write("old.parquet", &old, &narrow);
    write("new.parquet", &new, &wide);
    let asked: Vec<usize> = (0..60).collect();
    write("old-queries.parquet", &asked, &narrow);
    write("new-queries.parquet", &asked, &wide);
    let judged = asked.iter().flat_map(|row| {
        let same = (0..ITEMS).filter(move |other| other != row && other % CLASSES == row % CLASSES);
        same.map(move |other| format!("row-{row} 0 row-{other} 1\n"))
    });
    folder.write("qrels.txt", &judged.collect::<String>());
}

#[test]
fn ways_are_compared_and_maps_written() {
    let folder = Folder::new();
    spaces(&folder);
    let line = "migrate old.parquet new.parquet --id id --label label --score euclid --collection 1000000 --embed-price 0.1 \
                --write-price 0.01";
    let found = folder.json(
        &format!("{line} --query-map queries.safetensors --item-map items.safetensors"),
        &[],
    );
    assert_eq!(found["choice"], "embed all", "{found:#}");
    assert_eq!(
        (&found["items"], &found["unmatched_rows"]),
        (&238.into(), &2.into())
    );
    assert_eq!(found["queries"], 238);
    assert!(
        found["advice"]
            .as_str()
            .unwrap()
            .contains("To map items instead loses"),
        "{found:#}"
    );
    let prices: Vec<f64> = (0..6)
        .map(|way| number(&found, &format!("/costs/{way}/price")))
        .collect();
    assert_eq!(prices, [0.0, 0.0, 10.0, 60.0, 110.0, 110.0]);
    assert_eq!(number(&found, "/costs/5/stored_bytes"), 32e6);

    // The maps are models like others.
    folder.good("embed items.safetensors old.parquet -o mapped.npy", &[]);
    assert_eq!(
        (
            folder.read("mapped.npy").len(),
            folder.read("mapped.npy").dim()
        ),
        (239, 5)
    );
    folder.good(
        "embed queries.safetensors new-queries.parquet --side query -o asked.npy",
        &[],
    );
    assert_eq!(folder.read("asked.npy").dim(), 3);
    let again = "--query-map second.safetensors --threads 1";
    folder.good(&format!("{line} {again}"), &[]);
    assert_eq!(
        folder.bytes("queries.safetensors"),
        folder.bytes("second.safetensors")
    );

    // The way back changes nothing for the better.
    let back = folder.json(
        "migrate new.parquet old.parquet --id id --label label --score euclid",
        &[],
    );
    assert_eq!(back["choice"], "stay");
    let (out, _) = folder.good(line, &[]);
    assert!(
        out.contains("\nway back    keep the old vectors") && out.contains("     price\n"),
        "{out}"
    );
}

#[test]
fn queries_of_other_files_are_judged_by_their_ids() {
    let folder = Folder::new();
    spaces(&folder);
    let queries = "--old-queries old-queries.parquet --new-queries new-queries.parquet";
    let line = format!("migrate old.parquet new.parquet --id id {queries} --score euclid");
    let found = folder.json(&format!("{line} --qrels qrels.txt --measures map,p@1"), &[]);
    assert_eq!(
        (&found["queries"], &found["choice"]),
        (&60.into(), &"embed all".into())
    );
    // Two of the ways rank by vectors that another verb can rank by.
    for (way, name) in [(0, "old"), (4, "new")] {
        let eval = format!(
            "eval euclid --queries {name}-queries.parquet --items {name}.parquet --qrels known.txt --id id --measures map"
        );
        let known: String = String::from_utf8(folder.bytes("qrels.txt")).unwrap();
        let in_both = |line: &&str| {
            !line.contains(" row-0 ") && !line.contains(&format!(" row-{} ", ITEMS - 1))
        };
        let known: Vec<&str> = known.lines().filter(in_both).collect();
        folder.write("known.txt", &format!("{}\n", known.join("\n")));
        let expected = number(&folder.json(&eval, &[]), "/measures/map");
        let reported = number(&found, &format!("/lines/{way}/measures/map"));
        // The file has one item more than both have.
        assert!(
            (expected - reported).abs() < 0.01,
            "{name}: {expected} {reported}"
        );
    }
    let unjudged = folder.json(&format!("{line} --sample 40"), &[]);
    assert!(
        unjudged["choice"].is_null() && unjudged["queries"] == 40,
        "{unjudged:#}"
    );
    assert!(
        unjudged["advice"]
            .as_str()
            .unwrap()
            .starts_with("nobody knows")
    );
    assert_eq!(number(&unjudged, "/lines/4/measures/r@10"), 1.0);
}

#[test]
fn what_cannot_be_compared_says_why() {
    let folder = Folder::new();
    spaces(&folder);
    folder.write("none.txt", "x 0 y 1\n");
    let queries = "--old-queries old-queries.parquet --new-queries new-queries.parquet";
    for (line, expected) in [
        (
            "migrate old.parquet new-queries.parquet",
            "name a column of ids with --id",
        ),
        (
            "migrate old.parquet new.parquet --id label",
            "expected every id once",
        ),
        (
            "migrate old.parquet new.parquet --id id --label label --share 1",
            "share must be between 0 and 1",
        ),
        (
            "migrate old.parquet new.parquet --id id --label label --sample 5",
            "expected at least 10, but found 5",
        ),
        (
            "migrate old.parquet new.parquet --id id --label label --embed-price -1",
            "not below 0",
        ),
        (
            "migrate old.parquet new.parquet --id id --label label --measures accuracy",
            "must be one of a ranking",
        ),
        (
            "migrate old.parquet new.parquet --id id --label label --item-map old.parquet",
            "read by this command",
        ),
        (
            "migrate old-queries.parquet new-queries.parquet --id id --label label --score dot --sample 0",
            "at least 1",
        ),
    ] {
        let error = folder.refused(line, &[]);
        assert!(error.contains(expected), "{line}: {error}");
    }
    let error = folder.refused(
        &format!("migrate old.parquet new.parquet --id id {queries} --qrels none.txt"),
        &[],
    );
    assert!(error.contains("are the ids the same?"), "{error}");
}
