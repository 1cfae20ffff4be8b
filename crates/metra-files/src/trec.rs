//! Relevance judgements (qrels) and ranked lists (runs) in the text forms of TREC and BEIR.
//!
//! Fields are separated by white space. QrelsFile are `query iteration document grade` or
//! `query document grade`, one form for a whole file, with or without BEIR's header line.

use crate::error::{Error, Place, Result};
use crate::lines::visit_lines;
use metra::data::RowId;
use metra::internal::AtomicFile;
use metra::supervision::Judgement;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use std::path::Path;

/// Judgements whose query and document are in the tables at hand.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QrelsFile {
    /// The judgements, by row.
    pub judgements: Vec<Judgement>,
    /// Lines left out because their query is unknown, as after a filter.
    pub unknown_queries: u64,
    /// Lines left out because their document is unknown though their query is known.
    pub unknown_documents: u64,
}

/// The grade of every judged document of every query.
pub type QrelsByName = BTreeMap<String, BTreeMap<String, f32>>;

/// Read judgements and look up the rows of their queries and documents. A pair judged twice is an
/// error naming both lines.
pub fn read_qrels(
    path: &Path,
    query_ids: &HashMap<String, RowId>,
    item_ids: &HashMap<String, RowId>,
) -> Result<QrelsFile> {
    let mut qrels = QrelsFile::default();
    let mut seen: HashMap<(RowId, RowId), u64> = HashMap::new();
    visit_qrels(path, &mut |line, query, document, grade| {
        let Some(query_row) = query_ids.get(query).copied() else {
            qrels.unknown_queries += 1;
            return Ok(());
        };
        let Some(item) = item_ids.get(document).copied() else {
            qrels.unknown_documents += 1;
            return Ok(());
        };
        if let Some(first) = seen.insert((query_row, item), line) {
            return Err(judged_twice(path, line, query, document, Some(first)));
        }
        qrels.judgements.push(Judgement {
            query: query_row,
            item,
            grade,
        });
        Ok(())
    })?;
    Ok(qrels)
}

/// Read judgements by name, to judge a run. A pair judged twice is an error.
pub fn read_qrels_by_name(path: &Path) -> Result<QrelsByName> {
    let mut qrels = QrelsByName::new();
    visit_qrels(path, &mut |line, query, document, grade| {
        let documents = qrels.entry(query.to_owned()).or_default();
        match documents.insert(document.to_owned(), grade) {
            Some(_) => Err(judged_twice(path, line, query, document, None)),
            None => Ok(()),
        }
    })?;
    Ok(qrels)
}

fn judged_twice(path: &Path, line: u64, query: &str, document: &str, first: Option<u64>) -> Error {
    let before = first.map_or("before".into(), |line| format!("in line {line}"));
    let problem = format!(
        "expected every pair once, but query {query:?} and document {document:?} were judged \
         {before}"
    );
    Error::row(path, Place::Line(line), problem)
}

fn visit_qrels(
    path: &Path,
    visit: &mut dyn FnMut(u64, &str, &str, f32) -> Result<()>,
) -> Result<()> {
    let mut form = None;
    let mut judged = false;
    visit_fields(path, &mut |line, fields| {
        let expected = *form.get_or_insert(fields.len());
        let (query, document, grade) = match fields {
            [query, document, grade] if expected == 3 => (query, document, grade),
            [query, _, document, grade] if expected == 4 => (query, document, grade),
            _ => {
                let wanted = match expected {
                    3 | 4 => format!("{expected} fields as in the lines before"),
                    _ => "query iteration document grade, or query document grade".into(),
                };
                let problem = format!("expected {wanted}, but found {} fields", fields.len());
                return Err(Error::row(path, Place::Line(line), problem));
            }
        };
        if !judged && *query == "query-id" {
            return Ok(());
        }
        judged = true;
        let value = grade.parse::<f32>().ok().filter(|g| g.is_finite());
        let value = value.ok_or_else(|| {
            let problem = format!("expected a number as grade, but found {grade:?}");
            Error::row(path, Place::Line(line), problem)
        })?;
        visit(line, query, document, value)
    })?;
    if !judged {
        return Err(Error::file(path, "expected judgements, but found none"));
    }
    Ok(())
}

/// Visit the fields of every line that is not blank. `#` begins no comment here: ids may.
fn visit_fields(path: &Path, visit: &mut dyn FnMut(u64, &[&str]) -> Result<()>) -> Result<()> {
    visit_lines(path, &mut |line, text| {
        let fields: Vec<&str> = text.split_whitespace().collect();
        if fields.is_empty() {
            return Ok(());
        }
        visit(line, &fields)
    })
}

/// A ranked list of documents for every query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrecRun {
    /// Documents of each query with their scores (larger is better), in the order given.
    pub queries: BTreeMap<String, Vec<(String, f64)>>,
}

/// Read a run: lines `query Q0 document rank score tag`. The scores decide, not the ranks, as
/// trec_eval has it. A document that a query ranks twice and a score that is not finite are errors.
pub fn read_run(path: &Path) -> Result<TrecRun> {
    let mut run = TrecRun::default();
    let mut seen: HashMap<String, BTreeSet<String>> = HashMap::new();
    visit_fields(path, &mut |line, fields| {
        let bad = |problem| Error::row(path, Place::Line(line), problem);
        let [query, _, document, _, score, _] = fields else {
            return Err(bad(format!(
                "expected query Q0 document rank score tag, but found {} fields",
                fields.len()
            )));
        };
        let value = score.parse::<f64>().ok().filter(|s| s.is_finite());
        let value =
            value.ok_or_else(|| bad(format!("expected a finite score, but found {score:?}")))?;
        let documents = seen.entry((*query).to_owned()).or_default();
        if !documents.insert((*document).to_owned()) {
            return Err(bad(format!(
                "expected every document once, but query {query:?} ranks {document:?} twice"
            )));
        }
        let ranked = run.queries.entry((*query).to_owned()).or_default();
        ranked.push(((*document).to_owned(), value));
        Ok(())
    })?;
    if run.queries.is_empty() {
        return Err(Error::file(
            path,
            "expected ranked documents, but found none",
        ));
    }
    Ok(run)
}

/// Write a run, each query's documents by falling score, ties by falling document id as trec_eval
/// breaks them. Ids with white space, which no reader could take apart, are an error.
pub fn write_run(path: &Path, run: &TrecRun, tag: &str) -> Result<()> {
    let check = |what: &str, name: &str| plain(path, what, name);
    check("tag", tag)?;
    let mut target = AtomicFile::create(path).map_err(|e| Error::metra(path, e))?;
    for (query, documents) in &run.queries {
        check("query id", query)?;
        let mut ranked: Vec<&(String, f64)> = documents.iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| b.0.cmp(&a.0)));
        for (rank, (document, score)) in ranked.into_iter().enumerate() {
            check("document id", document)?;
            if !score.is_finite() {
                let problem = format!(
                    "query {query:?}, document {document:?}: expected a finite score, but found \
                     {score}"
                );
                return Err(Error::file(path, problem));
            }
            writeln!(target, "{query} Q0 {document} {} {score} {tag}", rank + 1)
                .map_err(|e| Error::io(path, e))?;
        }
    }
    target.finish().map_err(|e| Error::metra(path, e))
}

/// Write judgements as TREC has them: lines `query 0 item grade`. Ids with white space are an error.
pub fn write_qrels<'a>(
    path: &Path,
    judgements: impl IntoIterator<Item = (&'a str, &'a str, u32)>,
) -> Result<()> {
    let mut target = AtomicFile::create(path).map_err(|e| Error::metra(path, e))?;
    for (query, item, grade) in judgements {
        plain(path, "query id", query)?;
        plain(path, "item id", item)?;
        writeln!(target, "{query} 0 {item} {grade}").map_err(|e| Error::io(path, e))?;
    }
    target.finish().map_err(|e| Error::metra(path, e))
}

/// Fields are separated by white space, so a name must have none.
fn plain(path: &Path, what: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.contains(char::is_whitespace) {
        let problem = format!("expected a {what} without white space, but found {name:?}");
        return Err(Error::file(path, problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn ids(names: &[&str]) -> HashMap<String, RowId> {
        let numbered = names.iter().enumerate();
        numbered.map(|(i, n)| (n.to_string(), i as RowId)).collect()
    }

    #[test]
    fn all_forms_of_qrels_say_the_same() {
        let forms = [
            "q1 0 d1 2\nq1 0 d9 1\n\nq7 0 d1 1\nq2\t0\td2\t-1\n",
            "q1 d1 2\nq1 d9 1\nq7 d1 1\nq2 d2 -1",
            "query-id\tcorpus-id\tscore\r\nq1\td1\t2\r\nq1\td9\t1\r\nq7\td1\t1\r\nq2\td2\t-1\r\n",
        ];
        for text in forms {
            let file = file(text);
            let qrels = read_qrels(file.path(), &ids(&["q1", "q2"]), &ids(&["d1", "d2"])).unwrap();
            assert_eq!((qrels.unknown_queries, qrels.unknown_documents), (1, 1));
            let found: Vec<_> = qrels
                .judgements
                .iter()
                .map(|j| (j.query, j.item, j.grade))
                .collect();
            assert_eq!(found, [(0, 0, 2.0), (1, 1, -1.0)]);
            assert_eq!(read_qrels_by_name(file.path()).unwrap()["q1"]["d9"], 1.0);
        }
    }

    #[test]
    fn bad_qrels_name_the_line() {
        let error = |text| {
            let file = file(text);
            let by_row = read_qrels(file.path(), &ids(&["q"]), &ids(&["d"])).unwrap_err();
            (by_row.to_string(), read_qrels_by_name(file.path()).is_err())
        };
        for (text, expected) in [
            (
                "q 0 d x",
                "line 1: expected a number as grade, but found \"x\"",
            ),
            ("q 0 d 1\nq 0 d NaN", "line 2: expected a number"),
            (
                "q 0 d 1\n\nq d 1",
                "line 3: expected 4 fields as in the lines before, but found 3",
            ),
            ("q 0", "line 1: expected query iteration document grade"),
            ("q 0 d 1\nq 0 d 1", "were judged in line 1"),
            ("", "expected judgements, but found none"),
        ] {
            let (message, by_name) = error(text);
            assert!(message.contains(expected) && by_name, "{message}");
        }
    }

    #[test]
    fn runs_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.txt");
        let documents = [("a", 0.1), ("b", 1e-30), ("c", 0.1)];
        let documents = documents.map(|(d, s)| (d.to_owned(), s)).to_vec();
        let run = TrecRun {
            queries: BTreeMap::from([("q".to_owned(), documents)]),
        };
        write_run(&path, &run, "metra").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("q Q0 c 1 0.1 metra\nq Q0 a 2 0.1 metra\n"));
        let read = read_run(&path).unwrap();
        assert_eq!(read.queries["q"][2], ("b".to_owned(), 1e-30));

        let spaced = TrecRun {
            queries: BTreeMap::from([("q 1".to_owned(), vec![])]),
        };
        assert!(write_run(&path, &spaced, "metra").is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn bad_runs_name_the_line() {
        let error = |text| read_run(file(text).path()).unwrap_err().to_string();
        assert!(
            error("q Q0 d 1 0.5 t\nq Q0 d 2 0.4 t").contains("line 2: expected every document")
        );
        assert!(error("q Q0 d 1 inf t").contains("line 1: expected a finite score"));
        assert!(error("q Q0 d 1 0.5").contains("but found 5 fields"));
        assert!(error("\n").contains("found none"));
    }
}
