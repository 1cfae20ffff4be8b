//! PairList, triplets, quadruplets, orderings and taxonomies.

use crate::{options, read};
use metra::supervision::{Labels, Quadruplet, Taxonomy};
use metra_files::{
    Error, RowNames, read_orderings, read_pairs, read_quadruplets, read_taxonomy, read_triplets,
};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A table of five rows with ids, and a place for files.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Place(tempfile::tempdir().unwrap());
        let lines = "id,use,vector_0\na,1,0\nb,1,1\nc,0,2\nd d,1,3\n#e,1,4\n";
        place.write("x.csv", lines);
        place
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn names(&self, id: Option<&str>, filters: &[&str]) -> RowNames {
        let table = read(&self.0.path().join("x.csv"), &options(&["id"], filters)).unwrap();
        RowNames::new(&table, id).unwrap()
    }

    /// A message without the folder.
    fn message<T>(&self, result: Result<T, Error>) -> String {
        let message = result.err().expect("must be refused").to_string();
        message.replace(&format!("{}/", self.0.path().display()), "")
    }
}

#[test]
fn pairs_by_id_and_by_line() {
    let place = Place::new();
    let text = "# who belongs together\r\na\tb\t1\r\n\r\nd d\ta\t0\r\nb\ta\t1\r\nc\t#e\t0\r\n";
    let pairs = read_pairs(&place.write("p", text), &place.names(Some("id"), &[])).unwrap();
    assert_eq!(pairs.similar, [[0, 1], [1, 0]]);
    assert_eq!((pairs.dissimilar, pairs.unknown), (vec![[3, 0], [2, 4]], 0));
    // The header is line 1, so the first vector is line 2.
    let pairs = read_pairs(&place.write("p", "2 3 1\n6 2 0"), &place.names(None, &[])).unwrap();
    assert_eq!(
        (pairs.similar, pairs.dissimilar),
        (vec![[0, 1]], vec![[4, 0]])
    );
    // Row c is filtered away: lines with it are counted, and later rows move up.
    let some = place.names(Some("id"), &["use=1"]);
    let pairs = read_pairs(&place.write("p", text), &some).unwrap();
    assert_eq!((pairs.dissimilar, pairs.unknown), (vec![[2, 0]], 1));
    let some = place.names(None, &["use=1"]);
    let pairs = read_pairs(&place.write("p", "2 4 1\n2 5 1"), &some).unwrap();
    assert_eq!((pairs.similar, pairs.unknown), (vec![[0, 2]], 1));
}

#[test]
fn bad_pairs_name_the_line() {
    let place = Place::new();
    let refused = |text: &str, expected: &str| {
        let path = place.write("p.tsv", text);
        let message = place.message(read_pairs(&path, &place.names(Some("id"), &[])));
        assert_eq!(message, format!("p.tsv: {expected}"));
    };
    refused(
        "a b 1\n\na x 1",
        "line 3: expected an id that x.csv has, but found \"x\"",
    );
    refused(
        "a a 1",
        "line 1: expected two different rows, but found one twice",
    );
    refused(
        "a b",
        "line 1: expected two rows, and 1 for similar or 0 for dissimilar, but found 2 fields",
    );
    refused(
        "a b -1",
        "line 1: expected 1 for similar or 0, but found \"-1\"",
    );
    refused(
        "a b 1 0",
        "line 1: expected two rows, and 1 for similar or 0 for dissimilar, but found 4 fields",
    );
    refused(
        "a b 1\n# so\nb a 0",
        "line 3: expected every pair to be one thing, but these are dissimilar here and similar in \
         line 1",
    );
    refused("# nothing\n", "expected pairs, but found none");
    let path = place.write("p.tsv", "a b 1");
    let message = place.message(read_pairs(&path, &place.names(None, &[])));
    let expected = "expected the number of a row of x.csv (or name its column of ids), but found";
    assert!(message.contains(expected), "{message}");
    let path = place.write("p.tsv", "2 1 1");
    let message = place.message(read_pairs(&path, &place.names(None, &[])));
    assert!(
        message.ends_with("expected line 2 to line 6 of x.csv, but found 1"),
        "{message}"
    );
    let path = place.write("p.tsv", "c a 1\nc b 1");
    let message = place.message(read_pairs(&path, &place.names(Some("id"), &["use=1"])));
    assert!(
        message.contains("but all 2 name some that were not"),
        "{message}"
    );
    assert!(
        place
            .message(read_pairs(Path::new("none"), &place.names(None, &[])))
            .starts_with("none: ")
    );
}

#[test]
fn triplets_and_quadruplets() {
    let place = Place::new();
    let names = place.names(Some("id"), &[]);
    // People disagree: both are kept.
    let path = place.write("t", "a b c\na c b\na\td d\t#e\n");
    let found = read_triplets(&path, &names).unwrap();
    assert_eq!(found.triplets, [[0, 1, 2], [0, 2, 1], [0, 3, 4]]);
    let message = |text: &str| place.message(read_triplets(&place.write("t", text), &names));
    assert!(message("a b a").contains("line 1: expected three different rows"));
    assert!(message("a b c 1").contains("expected anchor, near and far, but found 4 fields"));
    assert!(message("a b").contains("found 2 fields"));
    assert!(message("").contains("expected triplets, but found none"));

    let path = place.write("q", "a b c #e\na b a c light\nb c a b strict\n");
    let found = read_quadruplets(&path, &names).unwrap().quadruplets;
    let quadruplet = |near, far, strict| Quadruplet { near, far, strict };
    assert_eq!(
        found,
        [
            quadruplet([0, 1], [2, 4], true),
            quadruplet([0, 1], [0, 2], false),
            quadruplet([1, 2], [0, 1], true),
        ]
    );
    let message = |text: &str| place.message(read_quadruplets(&place.write("q", text), &names));
    assert!(message("a b c c").contains("line 1: expected a far pair of different rows"));
    assert!(message("a b b a").contains("one compared with itself"));
    assert!(message("a b a c soft").contains("expected strict or light, but found \"soft\""));
    assert!(message("a b a c light x").contains("but found 6 fields"));
}

#[test]
fn orderings() {
    let place = Place::new();
    let labels = Labels::from_names(&["T", "I", "S", "H"]).unwrap();
    let path = place.write("o", "# of scenes\nnatural: T<I~S<H\r\n\nopen:T ~ I<S < H");
    let found = read_orderings(&path, &labels, false).unwrap();
    assert_eq!((found.orderings.len(), found.unknown), (2, 0));
    assert_eq!(found.orderings[0].attribute(), "natural");
    assert_eq!(found.orderings[1].levels()[0], ["T", "I"]);
    let message =
        |text: &str| place.message(read_orderings(&place.write("o", text), &labels, false));
    assert!(message("natural T<I").contains("line 1: expected an attribute, a colon"));
    assert!(message("natural: T<<I").contains("line 1: ordering by \"natural\": expected classes"));
    assert!(message("open: T<I\nopen: T<S").contains("line 2: expected every attribute once"));
    let unknown = message("open: T<I\nopen sky: T<X");
    let expected =
        "o: line 2: expected classes among [\"H\", \"I\", \"S\", \"T\"], but found \"X\"";
    assert_eq!(unknown, expected);
    assert!(message("# none").contains("but found none"));
    // With a filter the class may be one that was left out; what is left may order nothing.
    let path = place.write("o", "open: T<X<I\nwide: X<T");
    let found = read_orderings(&path, &labels, true).unwrap();
    assert_eq!((found.orderings.len(), found.unknown), (1, 2));
    assert_eq!(found.orderings[0].levels().len(), 2);
}

#[test]
fn taxonomies() {
    let place = Place::new();
    let text =
        "poodle\tdog\nold beagle\tdog\r\n# cats\ntabby\tcat\ndog\tanimal\ncat\tanimal\ntabby\tcat";
    let tree = read_taxonomy(&place.write("t", text)).unwrap();
    let labels = Labels::from_names(&["old beagle", "poodle", "tabby"]).unwrap();
    let taxonomy = Taxonomy::new(labels, tree).unwrap();
    assert_eq!((taxonomy.kinship(0, 1), taxonomy.kinship(0, 2)), (1, 2));
    let message = |text: &str| place.message(read_taxonomy(&place.write("t", text)));
    assert!(message("old beagle dog").contains("line 1: expected child and parent"));
    assert!(message("a b\na c").contains("has \"c\" here and \"b\" in line 1"));
    assert!(message("a a").contains("line 1: expected two different names"));
    assert!(message("a b\nc d").contains("t: taxonomy: expected one root"));
    assert!(message("a b\nb a\nc d").contains("own ancestor"));
    assert!(message("").contains("but found none"));
}
