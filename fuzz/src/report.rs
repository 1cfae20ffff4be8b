//! Names in a report, read back from HTML and Markdown by parsers that are not ours.

use crate::{Outcome, Reading};
use metra::experiment::compare::Results;
use metra_report::{html, markdown};
use pulldown_cmark::{Event, Options, Parser, Tag};
use roxmltree::{Document, ParsingOptions};
use std::sync::LazyLock;

/// Results of a small comparison, `metra compare` on examples/data/digits.parquet.
static RESULTS: LazyLock<Results> = LazyLock::new(|| {
    Results::from_json(include_str!("../results.json")).expect("results of a comparison")
});
static PLAIN: LazyLock<Vec<String>> = LazyLock::new(|| structure(&markdown(&named("plain"), None)));

pub(crate) fn report(bytes: &[u8]) -> Outcome {
    // Bold text that ends with a space is not bold in Markdown, which harms nobody.
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let results = named(text);
    let page = html(&results, None).expect("a page");
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(&page, options).expect("a well-formed page");
    let mut elements = document.descendants().filter(|node| node.is_element());
    assert!(elements.all(|node| {
        let handlers = node
            .attributes()
            .any(|attribute| attribute.name().starts_with("on"));
        !handlers && !["script", "iframe", "object"].contains(&node.tag_name().name())
    }));
    let page = markdown(&results, None);
    let found = structure(&page);
    assert_eq!(found, *PLAIN, "{page}");
    let mut reading = Reading::default();
    reading.text(&page);
    reading.done()
}

fn named(text: &str) -> Results {
    let mut results = RESULTS.clone();
    for line in &mut results.lines {
        for name in [&mut line.name, &mut line.method] {
            *name = text.to_owned();
        }
        for split in &mut line.splits {
            split
                .chosen
                .values_mut()
                .for_each(|value| *value = text.to_owned());
        }
    }
    // One paragraph: an empty line would begin another one, as it should.
    results.about = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for place in [
        &mut results.name,
        &mut results.command,
        &mut results.version,
        &mut results.data.text,
        &mut results.protocol.protocol,
        &mut results.base,
        &mut results.best,
    ] {
        *place = text.to_owned();
    }
    results
}

/// The blocks and marks of a page, without its texts.
fn structure(page: &str) -> Vec<String> {
    let events = Parser::new_ext(page, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    events
        .filter_map(|event| match event {
            Event::Start(Tag::CodeBlock(_)) => Some("code".into()),
            Event::Start(tag) => Some(format!("{tag:?}")),
            Event::Html(_) | Event::InlineHtml(_) => Some("html".into()),
            Event::Rule => Some("rule".into()),
            _ => None,
        })
        .collect()
}
