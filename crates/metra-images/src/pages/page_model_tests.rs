//! Weights of drawn pages, where it is known which cells have the news.

use super::*;
use crate::Picture;
use crate::pages::Precision;
use crate::pages::descriptors::by_hand;
use image::Rgb;
use metra::evaluate::dissimilarities;
use metra::internal::Stream;

static GO: AtomicBool = AtomicBool::new(false);

/// Cells of a grid of 4 × 4 that get a new pattern now and then, that are drawn anew among three patterns
/// for every version, and one that never has the same pattern twice.
const NEWS: [usize; 3] = [5, 6, 9];
const DRAWN: [usize; 4] = [0, 1, 11, 15];
const CLOCK: usize = 3;

/// Patterns of each cell, a version each, and whether news came with it.
fn patterns(seed: u64, versions: usize) -> Vec<([u64; 16], bool)> {
    let mut random = Stream::new(seed, "drawn pages", 0);
    let mut shown = [0; 16];
    let mut all = Vec::new();
    for version in 0..versions as u64 {
        let mut came = false;
        for cell in NEWS {
            if random.unit() < 0.15 {
                shown[cell] += 1;
                came = true;
            }
        }
        for cell in DRAWN {
            shown[cell] = random.below(3);
        }
        shown[CLOCK] = version;
        all.push((shown, came));
    }
    all
}

/// A picture whose cells have stripes of many directions and widths.
fn draw(seed: u64, shown: &[u64; 16]) -> Picture {
    let looks: Vec<[f64; 2]> = (shown.iter().enumerate())
        .map(|(cell, state)| {
            let mut look = Stream::new(seed, "look", 1000 * cell as u64 + state);
            [look.unit() - 0.5, look.unit() - 0.5].map(|step| 2.0 * step)
        })
        .collect();
    Picture::from_fn(128, 128, |x, y| {
        let [across, down] = looks[(y / 32 * 4 + x / 32) as usize];
        let wave = (across * f64::from(x) + down * f64::from(y)).sin();
        Rgb([(127.0 + 100.0 * wave) as u8; 3])
    })
}

fn series(folder: &Path, seed: u64, versions: usize) -> (Series, Vec<bool>) {
    let patterns = patterns(seed, versions);
    for (number, (shown, _)) in patterns.iter().enumerate() {
        draw(seed, shown)
            .save(folder.join(format!("{number}.png")))
            .unwrap();
    }
    let came = patterns.iter().skip(1).map(|(_, came)| *came).collect();
    (Series::open(folder).unwrap(), came)
}

fn describe(series: &Series) -> Described {
    let frame = Frame::of(series).unwrap();
    let layout = Layout::grid(4, frame).unwrap();
    Described::new(series, frame, layout, &GO, &mut |_| {}).unwrap()
}

#[test]
fn weights_fall_on_the_cells_that_accumulate() {
    let folder = tempfile::tempdir().unwrap();
    let (series, came) = series(folder.path(), 1, 40);
    let described = describe(&series);
    let model = PageModel::learn(&series, &described, &[], &Learning::default(), &GO).unwrap();
    let share = |cells: &[usize]| {
        let total: f64 = model.weights().iter().sum();
        cells.iter().map(|cell| model.weights()[*cell]).sum::<f64>() / total
    };
    // 3 of the 8 cells that ever change, 3 of 16 in all.
    assert!(share(&NEWS) > 0.8, "{:?}", model.weights());
    let scores = successive(&described, model.weights()).unwrap();
    let learned = Precision::of(&scores, &came).unwrap().unwrap().mean();
    let euclid = successive(&described, &[1.0; 16]).unwrap();
    let base = Precision::of(&euclid, &came).unwrap().unwrap().mean();
    assert!(learned > 0.95 && learned > base + 0.1, "{learned} {base}");
    let right = scores
        .iter()
        .zip(&came)
        .filter(|(s, c)| (**s > model.threshold()) == **c);
    assert!(right.count() >= 35, "{scores:?} {}", model.threshold());
}

#[test]
fn labelled_pairs_bring_a_threshold_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (series, came) = series(folder.path(), 2, 40);
    let described = describe(&series);
    let labels: Vec<Labelled> = (came.iter().enumerate().take(12))
        .map(|(place, changed)| Labelled {
            pair: [place, place + 1],
            changed: *changed,
        })
        .collect();
    let model = PageModel::learn(&series, &described, &labels, &Learning::default(), &GO).unwrap();
    assert_eq!(model.labels(), 12);
    let scores = successive(&described, model.weights()).unwrap();
    let right = scores
        .iter()
        .zip(&came)
        .filter(|(s, c)| (**s > model.threshold()) == **c);
    assert!(right.count() >= 36, "{scores:?} {}", model.threshold());
    let one: Vec<Labelled> = labels
        .iter()
        .copied()
        .filter(|label| label.changed)
        .collect();
    let error = PageModel::learn(&series, &described, &one, &Learning::default(), &GO).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("both kinds to learn from, found 0 the same"),
        "{error}"
    );
}

#[test]
fn the_score_is_the_models_and_survives_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let (series, _) = series(folder.path(), 3, 16);
    let learn = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let described = describe(&series);
            PageModel::learn(&series, &described, &[], &Learning::default(), &GO).unwrap()
        })
    };
    let (model, described) = (learn(1), describe(&series));
    assert_eq!(model, learn(2), "threads change nothing");
    let by_library =
        dissimilarities(&model.model().chain, described.corpus(), None, &[[2, 7]]).unwrap();
    let parts: f64 = model.parts(&described, 2, 7).unwrap().iter().sum();
    assert!(
        (by_library[0] - parts).abs() < 1e-4 * parts,
        "{by_library:?} {parts}"
    );
    let path = folder.path().join("page.safetensors");
    model.save(&path).unwrap();
    assert_eq!(PageModel::load(&path).unwrap(), model);
}

#[test]
fn what_cannot_be_learned_from_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let (few, _) = series(folder.path(), 1, 5);
    let described = by_hand(vec![0.0; 5 * 4], 2, 1);
    let error = PageModel::learn(&few, &described, &[], &Learning::default(), &GO).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("at least 10 screenshots to learn from, found 5"),
        "{error}"
    );
    let folder = tempfile::tempdir().unwrap();
    let (still, _) = series(folder.path(), 1, 12);
    let described = by_hand(vec![1.0; 12 * 4], 2, 1);
    let error = PageModel::learn(&still, &described, &[], &Learning::default(), &GO).unwrap_err();
    assert!(
        error.to_string().contains("nothing can be learned"),
        "{error}"
    );
}
