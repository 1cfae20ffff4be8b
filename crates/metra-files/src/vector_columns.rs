//! Which columns of a table are the vector, decided by their names alone and never by whether they
//! look like numbers: an id looks like one, too.

use crate::error::{Error, Result};
use crate::table::{TableOptions, no_vector, position};
use std::path::Path;

/// Where the vector of a row is.
#[derive(Debug, PartialEq)]
pub(crate) enum VectorColumns {
    /// A list of numbers in one column.
    List(usize),
    /// A list of numbers in each of these columns, one behind the other; a column may stand there more than once.
    Lists(Vec<usize>),
    /// A number in each of these columns.
    Numbers(Vec<usize>),
}

impl VectorColumns {
    /// The columns that [`TableOptions::vector`] speaks of. `taken` are those read for other ends;
    /// `lists` are those known to hold lists, of which a single one needs no name.
    pub(crate) fn find(
        path: &Path,
        names: &[String],
        taken: &[usize],
        lists: &[usize],
        options: &TableOptions,
    ) -> Result<Self> {
        let wanted = options.vector.as_deref().unwrap_or("vector");
        if names.iter().any(|name| name == wanted) {
            return Ok(VectorColumns::List(position(path, names, wanted)?));
        }
        if let (None, [only]) = (&options.vector, lists) {
            return Ok(VectorColumns::List(*only));
        }
        let (found, expected) = if wanted.contains('*') {
            let free = |column: &usize| !taken.contains(column);
            let fits = |column: &usize| matches_pattern(&names[*column], wanted);
            let found = (0..names.len()).filter(|column| free(column) && fits(column));
            let expected = match wanted {
                "*" => "columns beside those wanted and filtered on".to_owned(),
                _ => format!("columns whose names are like {wanted}"),
            };
            (found.collect(), expected)
        } else if wanted.contains(',') {
            let listed = wanted
                .split(',')
                .map(|name| position(path, names, name.trim()));
            let listed: Vec<usize> = listed.collect::<Result<_>>()?;
            if listed.iter().any(|column| lists.contains(column)) {
                check_lists(path, names, &listed, lists)?;
                return Ok(VectorColumns::Lists(listed));
            }
            check_listed(path, names, &listed, &taken[..options.columns.len()])?;
            (listed, String::new())
        } else {
            let expected = format!(
                "a column {wanted:?} of lists, or columns {wanted}_0, {wanted}_1, … of numbers"
            );
            (numbered(path, names, wanted)?, expected)
        };
        if found.is_empty() {
            return Err(no_vector(path, &expected, names));
        }
        for column in &found {
            position(path, names, &names[*column])?;
        }
        Ok(VectorColumns::Numbers(found))
    }

    /// All columns that it is made of.
    pub(crate) fn all(&self) -> &[usize] {
        match self {
            VectorColumns::List(column) => std::slice::from_ref(column),
            VectorColumns::Lists(columns) | VectorColumns::Numbers(columns) => columns,
        }
    }

    /// How it is called.
    pub(crate) fn name(&self, names: &[String]) -> String {
        match self {
            VectorColumns::List(column) => names[*column].clone(),
            VectorColumns::Lists(columns) => {
                let names: Vec<&str> = columns
                    .iter()
                    .map(|column| names[*column].as_str())
                    .collect();
                names.join(",")
            }
            VectorColumns::Numbers(_) => "the vector".to_owned(),
        }
    }

    /// How one number of it is called.
    pub(crate) fn number_name(&self, names: &[String], index: usize) -> String {
        match self {
            VectorColumns::List(column) => format!("{}[{index}]", names[*column]),
            VectorColumns::Lists(_) => format!("{}[{index}]", self.name(names)),
            VectorColumns::Numbers(columns) => names[columns[index]].clone(),
        }
    }
}

/// Columns of lists stand beside columns of lists alone.
fn check_lists(path: &Path, names: &[String], listed: &[usize], lists: &[usize]) -> Result<()> {
    match listed.iter().find(|column| !lists.contains(column)) {
        None => Ok(()),
        Some(other) => {
            let problem = format!(
                "expected columns of lists of numbers beside each other, but {:?} is none, or is read for something else",
                names[*other]
            );
            Err(Error::file(path, problem))
        }
    }
}

/// A list of columns names each once, and none that is read as a label, an id or a camera.
fn check_listed(
    path: &Path,
    names: &[String],
    listed: &[usize],
    named_otherwise: &[usize],
) -> Result<()> {
    for (index, column) in listed.iter().enumerate() {
        let problem = if listed[..index].contains(column) {
            "is listed twice among the numbers of the vector"
        } else if named_otherwise.contains(column) {
            "is a number of the vector and also a label, an id or a camera: it can be one of them only"
        } else {
            continue;
        };
        let problem = format!("the column {:?} {problem}", names[*column]);
        return Err(Error::file(path, problem));
    }
    Ok(())
}

/// Whether a name is like a pattern, in which `*` stands for any text.
fn matches_pattern(name: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, inner)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in inner {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Columns named by a prefix and a number, in the order of the numbers, which must not repeat.
fn numbered(path: &Path, names: &[String], prefix: &str) -> Result<Vec<usize>> {
    let mut found: Vec<(u64, usize)> = Vec::new();
    for (position, name) in names.iter().enumerate() {
        let Some(rest) = name.strip_prefix(prefix) else {
            continue;
        };
        let digits = rest.strip_prefix('_').unwrap_or(rest);
        if digits.bytes().all(|b| b.is_ascii_digit())
            && let Ok(number) = digits.parse()
        {
            found.push((number, position));
        }
    }
    found.sort_unstable();
    if let Some(pair) = found.windows(2).find(|w| w[0].0 == w[1].0) {
        let problem = format!(
            "expected every number of the vector once, but found the columns {:?} and {:?}",
            names[pair[0].1], names[pair[1].1]
        );
        return Err(Error::file(path, problem));
    }
    // A gap is a lost column more often than a choice.
    if let Some(pair) = found.windows(2).find(|w| w[0].0 + 1 != w[1].0) {
        let problem = format!(
            "expected the numbers of the vector without gaps, but {:?} is followed by {:?}",
            names[pair[0].1], names[pair[1].1]
        );
        return Err(Error::file(path, problem));
    }
    Ok(found.into_iter().map(|(_, position)| position).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        assert!(matches_pattern("emb_12", "emb_*") && matches_pattern("a_x_b", "a*x*b"));
        assert!(!matches_pattern("xemb_1", "emb_*") && !matches_pattern("ab", "a*b*b"));
        assert!(matches_pattern("anything", "*"));
    }

    fn found(vector: &str, names: &[&str], label: &str) -> Result<VectorColumns> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let options = TableOptions {
            vector: Some(vector.to_owned()),
            columns: vec![label.to_owned()],
            ..TableOptions::default()
        };
        let path = Path::new("rows.csv");
        let taken = [position(path, &names, label)?];
        VectorColumns::find(path, &names, &taken, &[], &options)
    }

    #[test]
    fn several_lists_are_several_vectors() {
        let names = ["id", "title", "body"].map(str::to_owned);
        let with = |vector: &str| {
            let options = TableOptions {
                vector: Some(vector.to_owned()),
                ..TableOptions::default()
            };
            VectorColumns::find(Path::new("rows.parquet"), &names, &[], &[1, 2], &options)
        };
        let found = with("body,title,body").unwrap();
        assert_eq!(found, VectorColumns::Lists(vec![2, 1, 2]));
        assert_eq!(found.name(&names), "body,title,body");
        let text = with("title,id").unwrap_err().to_string();
        assert!(text.contains("\"id\" is none"), "{text}");
    }

    #[test]
    fn a_column_is_a_number_or_a_label_and_has_a_name_of_its_own() {
        let names = ["v_kind", "v_a", "v_b"];
        let numbers = |columns: &[usize]| VectorColumns::Numbers(columns.to_vec());
        assert_eq!(
            found("v_b,v_a", &names, "v_kind").unwrap(),
            numbers(&[2, 1])
        );
        assert_eq!(found("v_*", &names, "v_kind").unwrap(), numbers(&[1, 2]));
        assert_eq!(found("*", &names, "v_kind").unwrap(), numbers(&[1, 2]));
        let refused = |vector: &str, names: &[&str], label: &str| {
            found(vector, names, label).unwrap_err().to_string()
        };
        let text = refused("v_a,v_kind", &names, "v_kind");
        assert!(
            text.contains("\"v_kind\" is a number of the vector and also"),
            "{text}"
        );
        let text = refused("v_a,v_b,v_a", &names, "v_kind");
        assert!(text.contains("\"v_a\" is listed twice"), "{text}");
        let twice = ["kind", "a", "b", "a"];
        for vector in ["a,b", "*", "a"] {
            let text = refused(vector, &twice, "kind");
            assert!(text.contains("two columns are called \"a\""), "{text}");
        }
        let text = refused("b", &twice, "a");
        assert!(text.contains("two columns are called \"a\""), "{text}");
    }
}
