//! The HTML page, read back with a strict parser: what it must show, what it must never hold, and
//! that nothing in the results can break it.

#[allow(dead_code)]
mod fixture;

use metra::experiment::compare::{Costs, Evidence, PartLine, Results};
use metra_report::{SheetGroup, SheetPicture, Sheets, html, html_with_sheets};
use roxmltree::{Document, Node, ParsingOptions};

fn parse(page: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(page, options).expect("a well-formed page")
}

/// All text below a node, with single spaces.
fn text(node: Node<'_, '_>) -> String {
    let parts = node.descendants().filter(|part| part.is_text());
    let joined: Vec<&str> = parts.filter_map(|part| part.text()).collect();
    let joined = joined.join(" ").replace('\u{a0}', " ");
    joined.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn by_id<'a, 'd>(document: &'a Document<'d>, id: &str) -> Option<Node<'a, 'd>> {
    let mut nodes = document.descendants();
    nodes.find(|node| node.attribute("id") == Some(id))
}

fn with_tag<'a, 'd>(node: Node<'a, 'd>, tag: &str) -> Vec<Node<'a, 'd>> {
    let nodes = node.descendants();
    nodes.filter(|node| node.has_tag_name(tag)).collect()
}

/// Rows of the first table in a section, as their cells.
fn rows<'a, 'd>(section: Node<'a, 'd>) -> Vec<Vec<Node<'a, 'd>>> {
    let body = with_tag(section, "tbody");
    let rows = with_tag(body[0], "tr").into_iter();
    rows.map(|row| row.children().filter(Node::is_element).collect())
        .collect()
}

fn row<'a, 'd>(section: Node<'a, 'd>, name: &str) -> Vec<Node<'a, 'd>> {
    let found = rows(section).into_iter();
    let mut found = found.filter(|cells| text(cells[0]).contains(name));
    found.next().expect("a row of this name")
}

#[test]
fn pages_are_well_formed_and_fetch_nothing() {
    for (results, costs) in [fixture::comparison(), fixture::train(), fixture::many()] {
        let page = html(&results, Some(&costs)).unwrap();
        let document = parse(&page);
        for node in document.descendants() {
            for attribute in node.attributes() {
                if matches!(
                    attribute.name(),
                    "href" | "src" | "srcset" | "data" | "action"
                ) {
                    assert!(attribute.value().starts_with('#'), "{}", attribute.value());
                    assert!(by_id(&document, &attribute.value()[1..]).is_some());
                }
                assert!(!attribute.name().starts_with("on"), "{}", attribute.name());
            }
            assert!(!node.has_tag_name("script") && !node.has_tag_name("link"));
        }
        for word in ["http://", "https://", "@import", "url(", "javascript:"] {
            assert!(!page.contains(word), "{word}");
        }
        for id in document
            .descendants()
            .filter_map(|node| node.attribute("id"))
        {
            let same = document
                .descendants()
                .filter(|n| n.attribute("id") == Some(id));
            assert_eq!(same.count(), 1, "{id}");
        }
    }
}

#[test]
fn sheets_are_inside_the_page_and_have_words() {
    let (results, costs) = fixture::comparison();
    let sheet = |caption: &str, jpeg: &[u8]| SheetPicture {
        caption: caption.into(),
        size: (640, 300),
        jpeg: jpeg.to_vec(),
    };
    let sheets = Sheets {
        words: "What was found.".into(),
        groups: vec![
            SheetGroup {
                title: "Drawn & <shown>".into(),
                // In base64 by hand: three bytes of ones are ////, and two of them //8=.
                sheets: vec![sheet("\"a\"/<b>.png", &[255; 3]), sheet("c", &[255; 2])],
            },
            SheetGroup {
                title: "Empty".into(),
                sheets: Vec::new(),
            },
        ],
    };
    let page = html_with_sheets(&results, Some(&costs), &sheets).unwrap();
    let document = parse(&page);
    let section = by_id(&document, "sheets").unwrap();
    assert_eq!(text(with_tag(section, "h3")[0]), "Drawn & <shown>");
    assert_eq!(with_tag(section, "h3").len(), 1);
    let pictures = with_tag(section, "img");
    let data: Vec<_> = pictures
        .iter()
        .map(|p| p.attribute("src").unwrap())
        .collect();
    assert_eq!(
        data,
        ["data:image/jpeg;base64,////", "data:image/jpeg;base64,//8="]
    );
    assert_eq!(pictures[0].attribute("alt"), Some("\"a\"/<b>.png"));
    assert!(page.contains("; img-src data:\"/>"));
    let without = html(&results, Some(&costs)).unwrap();
    assert!(!without.contains("img-src") && !without.contains("<img"));
    assert!(by_id(&parse(&without), "sheets").is_none());
}

#[test]
fn a_reader_without_sight_finds_headers_captions_and_labels() {
    let (results, costs) = fixture::comparison();
    let page = html(&results, Some(&costs)).unwrap();
    let document = parse(&page);
    let root = document.root_element();
    assert_eq!(root.attribute("lang"), Some("en"));
    assert!(text(with_tag(root, "title")[0]).starts_with("VIPeR-like"));
    for header in with_tag(root, "th") {
        assert!(matches!(header.attribute("scope"), Some("col" | "row")));
    }
    let figures = with_tag(root, "figure");
    assert!(figures.len() >= 5);
    for figure in figures {
        assert_eq!(with_tag(figure, "figcaption").len(), 1);
        let svg = with_tag(figure, "svg")[0];
        assert_eq!(svg.attribute("role"), Some("img"));
        assert!(
            svg.attribute("aria-label")
                .is_some_and(|label| label.len() > 10)
        );
    }
}

#[test]
fn the_table_has_every_value_and_the_best_in_bold() {
    let (results, costs) = fixture::comparison();
    let page = html(&results, Some(&costs)).unwrap();
    let document = parse(&page);
    let scores = by_id(&document, "scores").unwrap();
    let listed = rows(scores);
    assert_eq!(listed.len(), 14);
    // The best is the kernel form with 0.641, and the next has no bold cell.
    assert!(text(listed[0][0]).starts_with("1 kernel-warca exp-χ²"));
    let bold = with_tag(listed[0][1], "b");
    assert_eq!(text(bold[0]), "0.6410");
    assert!(listed[1].iter().all(|cell| with_tag(*cell, "b").is_empty()));
    let bold: usize = listed
        .iter()
        .flatten()
        .map(|cell| with_tag(*cell, "b").len())
        .sum();
    assert_eq!(bold, 4, "one a measure");
    let warca = row(scores, "4 warca");
    assert_eq!(text(warca[1]), "0.6120 ± 0.0183");
    assert_eq!(text(warca[2]), "0.4836 ± 0.0183 published 0.3710");
    let ends: Vec<String> = warca[5..].iter().map(|cell| text(*cell)).collect();
    assert_eq!(ends, ["4", "4.10 s", "15 MiB", "164 s"]);
    // 0.641 − 0.634 = 0.007 is within 0.014, and 0.015 only within 0.024.
    assert!(text(row(scores, "multi-similarity")[0]).contains("≈"));
    assert!(text(row(scores, "supcon")[0]).contains("≈*"));
    assert!(!text(row(scores, "4 warca")[0]).contains("≈"));
    assert!(text(row(scores, "whiten")[0]).contains("10 of 10 splits failed"));
    // A mean over fewer splits has no place, however high.
    assert!(text(row(scores, "proxy-anchor")[0]).starts_with("–"));
}

#[test]
fn gains_have_intervals_and_words() {
    let (results, costs) = fixture::comparison();
    let page = html(&results, Some(&costs)).unwrap();
    let document = parse(&page);
    let gains = by_id(&document, "gains").unwrap();
    assert_eq!(rows(gains).len(), 11, "not the base and not what failed");
    let cosine = row(gains, "cosine");
    assert_eq!(text(cosine[1]), "+0.0070 [−0.0070, +0.0210] no evidence");
    // 0.3 × 0.007 − 0.02 = −0.0179: below 0 by 0.014, but not by 0.024.
    assert_eq!(text(cosine[2]), "−0.0179* [−0.0319, −0.0039]");
    assert_eq!(text(row(gains, "4 warca")[1]), "+0.2100 [+0.1960, +0.2240]");
    let failures = text(by_id(&document, "failures").unwrap());
    assert!(failures.contains("proxy-anchor 1, 2 training diverged at step 40"));
    assert!(failures.contains("whiten all rank must be between 1 and 128"));
    let claims = text(by_id(&document, "claims").unwrap());
    assert!(claims.contains("Of 4 claims: 2 reproduced, 1 not reproduced, 1 undecided."));
    assert!(claims.contains("Here LDA has a ridge, there none."));
}

#[test]
fn the_summary_says_what_the_figures_say() {
    let (results, costs) = fixture::comparison();
    let page = html(&results, Some(&costs)).unwrap();
    let summary = text(by_id(&parse(&page), "summary").unwrap());
    for words in [
        "kernel-warca exp-χ² is best: mAP 0.6410 in the mean of 10 splits.",
        "that is +0.2390 [+0.2250, +0.2530] (95 % interval), ahead in 10 of 10 splits.",
        "The evidence survives allowing for 25 comparisons.",
        "multi-similarity cannot be told from the best",
        "Allowing for all comparisons, supcon cannot be told from it either.",
        "No evidence of a difference: cosine and pca .",
        "468 of 3160 queries lost, 1689 gained",
        "proxy-anchor and whiten failed",
        "at most 8 settings a method",
        "10000 resamples of 316 identities with all their queries.",
        "Bonferroni, 99.80 % each",
    ] {
        assert!(summary.contains(words), "{words:?} is not in {summary}");
    }
    let (results, costs) = fixture::train();
    let page = html(&results, Some(&costs)).unwrap();
    let summary = text(by_id(&parse(&page), "summary").unwrap());
    assert!(summary.contains("learned is best: mAP 0.8772."));
    assert!(!summary.contains("Bonferroni") && !page.contains("± 0.0000"));
}

#[test]
fn the_base_can_be_the_best() {
    let (mut results, _) = fixture::train();
    results.best = "euclid".to_owned();
    let page = html(&results, None).unwrap();
    let summary = text(by_id(&parse(&page), "summary").unwrap());
    assert!(summary.contains("It is the base itself: no method is ahead of it."));
}

#[test]
fn charts_are_there_and_costs_can_be_missing() {
    let (results, costs) = fixture::comparison();
    let page = html(&results, Some(&costs)).unwrap();
    let document = parse(&page);
    for id in ["curves", "times", "queries"] {
        let section = by_id(&document, id).unwrap();
        assert!(!with_tag(section, "svg").is_empty(), "{id}");
    }
    let without = html(&results, None).unwrap();
    let document = parse(&without);
    assert!(by_id(&document, "times").is_none());
    assert!(!text(by_id(&document, "scores").unwrap()).contains("CPU"));
}

#[test]
fn names_are_text_whatever_they_hold() {
    let hostile = "<script>alert(\"1\")</script>'\" onload=x & \u{7} {{ name }} ]]>".to_owned();
    let long = "a".repeat(500);
    let (mut results, costs) = fixture::comparison();
    for line in &mut results.lines {
        for name in [&mut line.name, &mut line.method] {
            *name = format!("{hostile}{name}");
        }
        for split in &mut line.splits {
            split.chosen.insert(hostile.clone(), hostile.clone());
            split.failure = split.failure.as_ref().map(|_| hostile.clone());
        }
        if let Some(queries) = &mut line.queries {
            queries.gains[0].query = hostile.clone();
        }
    }
    results.base = format!("{hostile}{}", results.base);
    results.best = format!("{hostile}{}", results.best);
    results.lines[5].name = long.clone();
    results.protocol.measures[3] = hostile.clone();
    results.claims[0].remark = hostile.clone();
    for text in [
        &mut results.name,
        &mut results.about,
        &mut results.command,
        &mut results.version,
        &mut results.data.text,
        &mut results.data.fingerprint,
        &mut results.protocol.protocol,
    ] {
        *text = hostile.clone();
    }
    let page = html(&results, Some(&costs)).unwrap();
    let document = parse(&page);
    assert!(with_tag(document.root_element(), "script").is_empty());
    assert!(!page.contains("<script"));
    let shown = hostile.replace('\u{7}', "\u{fffd}");
    assert_eq!(text(with_tag(document.root_element(), "h1")[0]), shown);
    assert!(page.contains(&long));
}

#[test]
fn the_same_results_give_the_same_bytes() {
    let (results, costs) = fixture::comparison();
    let read = Results::from_json(&results.to_json().unwrap()).unwrap();
    let first = html(&results, Some(&costs)).unwrap();
    assert_eq!(first, html(&read, Some(&costs)).unwrap());
}

#[test]
fn nothing_measured_is_said_and_never_a_panic() {
    let (mut results, _) = fixture::comparison();
    results.lines.clear();
    let page = html(&results, Some(&Costs::default())).unwrap();
    let words = text(parse(&page).root_element());
    assert!(words.contains("Nothing was compared.") && words.contains("so none is best"));

    let (mut results, mut costs) = fixture::comparison();
    for line in &mut results.lines {
        for value in &mut line.measures {
            (value.mean, value.deviation) = (f64::NAN, f64::INFINITY);
        }
        for gain in line.against_base.iter_mut().chain(&mut line.against_best) {
            (gain.difference, gain.low, gain.wide_high) = (f64::NAN, f64::NAN, f64::INFINITY);
        }
        line.cmc = vec![f64::NAN; 3];
        line.precision = vec![0.5];
        if let Some(queries) = &mut line.queries {
            queries.histogram.clear();
            queries.gains.clear();
        }
    }
    for cost in costs.lines.values_mut() {
        cost.fit_cpu_seconds = f64::NAN;
    }
    results.protocol.splits.clear();
    let page = html(&results, Some(&costs)).unwrap();
    let words = text(parse(&page).root_element());
    assert!(words.contains("n/a") && !page.contains("NaN") && !page.contains("inf\""));

    // Lists that are shorter than they should be.
    let (mut results, _) = fixture::comparison();
    for line in &mut results.lines {
        line.measures.truncate(1);
        line.splits.truncate(2);
        line.cmc.truncate(1);
        line.against_base.truncate(1);
    }
    results.protocol.criterion = "unheard-of".to_owned();
    results.best = "nobody".to_owned();
    results.base = String::new();
    parse(&html(&results, None).unwrap());
}

#[test]
fn facts_and_unseen_items_are_shown_where_there_are_some() {
    let (mut results, _) = fixture::comparison();
    results.facts = vec!["ridge".to_owned()];
    let best = results.best.clone();
    let lines = results.lines.iter_mut();
    for line in lines.filter(|line| !line.failed()) {
        let overall = line.against_base.first().cloned();
        let mut none = overall.clone();
        if let Some(gain) = &mut none {
            (gain.low, gain.high, gain.evidence) = (-0.01, 0.02, Evidence::None);
        }
        let part = |part: &str, queries, gain| PartLine {
            part: part.to_owned(),
            queries,
            mean: 0.4321,
            gain,
        };
        line.parts = vec![
            part("seen items", 196, overall),
            part("unseen items", 104, none),
        ];
    }
    let page = html(&results, None).unwrap();
    let markdown = metra_report::markdown(&results, None);
    for shown in [&page, &markdown] {
        assert!(shown.contains("Seen and unseen items") && shown.contains("104 queries"));
        assert!(shown.contains("0.4321") || shown.contains(".4321"));
        assert!(shown.contains("may be memory of known items"), "{best}");
    }
    assert!(
        markdown.contains("| ridge |") && markdown.contains("0.0123"),
        "{markdown}"
    );
    let document = parse(&page);
    let scores = text(by_id(&document, "scores").unwrap());
    assert!(
        scores.contains("ridge") && !scores.contains("arguments"),
        "{scores}"
    );
    let without = html(&fixture::comparison().0, None).unwrap();
    assert!(!without.contains("Seen and unseen"));
}
