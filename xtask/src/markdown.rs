//! Lines of Markdown that are prose, and not code.

/// Lines outside fenced code, with their numbers from 1.
pub(crate) fn prose_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence = None;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let start = line.trim_start();
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| start.starts_with(mark));
        if mark.is_some() && (fence.is_none() || fence == mark) {
            fence = if fence.is_none() { mark } else { None };
            return false;
        }
        fence.is_none()
    })
}

/// A line without what stands between back quotes.
pub(crate) fn without_code_spans(content: &str) -> String {
    let mut parts = content.split('`');
    let mut prose = parts.next().unwrap_or_default().to_owned();
    // After a split at back quotes every second part was code; a lone last quote opens nothing.
    while let Some(code) = parts.next() {
        match parts.next() {
            Some(rest) => prose.push_str(rest),
            None => prose.push_str(code),
        }
    }
    prose
}
