//! The Markdown page: what it must say, and that it names no row of the data.

#[allow(dead_code)]
mod fixture;

use metra::experiment::compare::Evidence;
use metra_report::{markdown, verdict};

#[test]
fn the_page_says_what_was_found() {
    let (results, costs) = fixture::comparison();
    let page = markdown(&results, Some(&costs));
    for words in [
        "# VIPeR-like, new identities\n",
        "```\nmetra compare experiments/viper.toml --data $METRA_DATA --report viper.html\n```",
        "- **Best.** **kernel-warca exp-χ²** is best: mAP 0.6410",
        "|  | line | mAP | rank-1 | rank-5 | nDCG@10 | trials | CPU, one fit | memory | CPU, all |",
        "| 1 | **kernel-warca exp-χ²** | **0.6410** ± 0.0190 |",
        "| 2 | multi-similarity ≈ | 0.6340 ± 0.0197 |",
        "| 3 | supcon ≈\\* |",
        "0.4836 ± 0.0183 (0.3710)",
        "| cosine | +0.0070 \\[−0.0070, +0.0210\\], no evidence | −0.0179 \\[−0.0319, −0.0039\\]\\* |",
        "| whiten | all | rank must be between 1 and 128",
        "| **not reproduced** |",
        "| **undecided** |  |",
        "| lambda = 1e-4 \\| 1e-3 \\| 1e-2 \\| 1e-1 | lambda = 1e-3 (7 of 10); score = euclid (10 of 10) |",
        "- **Digest of the vectors:** blake3:4f9c",
        "## Costs\n\nAll trials and fits took 1480 s",
    ] {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    assert!(page.ends_with("Written by metra 0.1.0.\n"));
    // Rows of a table have as many cells as its head.
    for table in page.split("\n\n").filter(|block| block.starts_with('|')) {
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        let head = table.lines().next().map(cells);
        assert!(
            table.lines().all(|line| Some(cells(line)) == head),
            "{table}"
        );
    }
}

#[test]
fn no_query_is_named() {
    let (results, costs) = fixture::comparison();
    assert!(results.lines[1].queries.is_some());
    assert!(!markdown(&results, Some(&costs)).contains("query-"));
}

#[test]
fn names_are_text_and_nothing_panics() {
    let (mut results, _) = fixture::train();
    results.lines[1].name = "a|b <img> [x](y)\n\n# c".to_owned();
    results.best = results.lines[1].name.clone();
    let page = markdown(&results, None);
    assert!(
        page.contains("**a\\|b &lt;img> \\[x\\](y)  \\# c**"),
        "{page}"
    );
    assert!(!page.contains("Costs"));
    results.lines.clear();
    assert!(markdown(&results, None).contains("none is best"));
}

#[test]
fn the_verdict_states_the_interval_that_decided() {
    let (mut results, _) = fixture::comparison();
    let shipped = verdict(&results);
    assert!(
        shipped.starts_with(
            "Ship kernel-warca exp-χ²: it is better than euclid by more than chance (mAP +0.2390 ["
        ),
        "{shipped}"
    );
    assert!(!shipped.contains("This interval"), "{shipped}");

    let best = (results.lines.iter_mut())
        .find(|line| line.name == results.best)
        .unwrap();
    let gain = &mut best.against_base[0];
    (gain.low, gain.wide_low, gain.wide_high) = (0.01, -0.02, 0.498);
    gain.adjusted = Evidence::None;
    let kept = verdict(&results);
    for words in [
        "Keep euclid: kernel-warca exp-χ² is ahead, but not by more than chance (mAP +0.2390 [+0.0100, ",
        "comparison. 25 were made, and the interval that allows for this, [−0.0200, +0.4980], holds 0.",
        "compare kernel-warca exp-χ² alone with euclid",
    ] {
        assert!(kept.contains(words), "{words:?} is not in {kept}");
    }

    // One interval says it all where it holds 0 by itself.
    let best = (results.lines.iter_mut())
        .find(|line| line.name == results.best)
        .unwrap();
    let gain = &mut best.against_base[0];
    (gain.low, gain.evidence) = (-0.01, Evidence::None);
    let kept = verdict(&results);
    assert!(
        kept.contains("[−0.0100, ") && !kept.contains("This interval"),
        "{kept}"
    );

    results.best = "euclid".into();
    assert_eq!(
        verdict(&results),
        "Keep euclid: no method is ahead of it by mAP."
    );
}
