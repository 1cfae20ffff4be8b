//! Images to rows of features: in parallel, in order, a window at a time.
//!
//! Threads take images of one window while the rows of the window before are handed on, so that writing does
//! not wait for decoding nor decoding for writing. A thread holds one picture at a time and a window a few
//! dozen rows per thread: memory does not grow with the list.

use crate::decode::{Limits, decode};
use crate::describe::Describe;
use crate::list::ImageEntry;
use crate::{Error, Result};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Images of a window for each thread.
const PER_THREAD: usize = 32;

/// Describe every image, and hand its row or why there is none to `take`, in the order of the list.
/// Where `stopped` says so or `take` fails, the rest is left.
pub fn describe_all<T, E>(
    entries: &[ImageEntry],
    what: &dyn Describe,
    limits: Limits,
    stopped: &(dyn Fn() -> bool + Sync),
    mut take: T,
) -> Result<(), E>
where
    T: FnMut(usize, Result<Vec<f32>>) -> Result<(), E> + Send,
    E: Send,
{
    let failed = AtomicBool::new(false);
    let window = PER_THREAD * rayon::current_num_threads();
    let describe = |part: &[ImageEntry]| -> Vec<Result<Vec<f32>>> {
        let row = |entry: &ImageEntry| {
            if stopped() || failed.load(Ordering::Relaxed) {
                return Err(metra::Error::Interrupted.into());
            }
            describe_one(entry, what, limits)
        };
        // Images differ in cost by orders of magnitude: threads take them one by one.
        part.par_iter().with_max_len(1).map(row).collect()
    };
    let mut done = 0;
    let mut ready: Vec<Result<Vec<f32>>> = Vec::new();
    for part in entries.chunks(window).map(Some).chain([None]) {
        let (next, taken) = rayon::join(
            || part.map(describe).unwrap_or_default(),
            || {
                for row in ready.drain(..) {
                    // Rows that are being made are in vain then.
                    take(done, row).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
                    done += 1;
                }
                Ok::<(), E>(())
            },
        );
        taken?;
        ready = next;
    }
    Ok(())
}

fn describe_one(entry: &ImageEntry, what: &dyn Describe, limits: Limits) -> Result<Vec<f32>> {
    // Tables keep text in UTF-8; another name of the file would not be found again.
    if entry.path.to_str().is_none() {
        return Err(Error::image(
            &entry.path,
            "expected a path in UTF-8, found other bytes",
        ));
    }
    Ok(what.describe(&decode(&entry.path, limits)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Picture;
    use image::Rgb;
    use std::sync::atomic::AtomicUsize;

    /// The first pixel's red, after a while for some.
    struct First;

    impl Describe for First {
        fn dimension(&self) -> usize {
            1
        }

        fn describe(&self, picture: &Picture) -> Vec<f32> {
            let red = picture.get_pixel(0, 0)[0];
            if red.is_multiple_of(7) {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            vec![f32::from(red)]
        }
    }

    fn images(folder: &std::path::Path, count: u8) -> Vec<ImageEntry> {
        let entry = |number: u8| {
            let path = folder.join(format!("{number:03}.png"));
            if number == 30 {
                std::fs::write(&path, "no image").unwrap();
            } else {
                Picture::from_pixel(1, 1, Rgb([number, 0, 0]))
                    .save(&path)
                    .unwrap();
            }
            ImageEntry {
                path,
                fields: Vec::new(),
            }
        };
        (0..count).map(entry).collect()
    }

    #[test]
    fn rows_come_in_order_and_a_bad_image_is_one_bad_row() {
        let folder = tempfile::tempdir().unwrap();
        let entries = images(folder.path(), 200);
        for threads in [1, 2, 3] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            let mut rows = Vec::new();
            let take = |place, row: Result<Vec<f32>>| {
                rows.push((place, row.ok()));
                Ok::<(), Error>(())
            };
            pool.install(|| describe_all(&entries, &First, Limits::default(), &|| false, take))
                .unwrap();
            assert_eq!(rows.len(), 200);
            for (place, (found, row)) in rows.into_iter().enumerate() {
                let expected = (place != 30).then(|| vec![place as f32]);
                assert_eq!((found, row), (place, expected));
            }
        }
    }

    #[test]
    fn a_stop_and_a_failed_writer_end_it() {
        let folder = tempfile::tempdir().unwrap();
        let entries = images(folder.path(), 20);
        let mut taken = 0;
        let take = |_, row: Result<Vec<f32>>| {
            taken += 1;
            row.map(|_| ())
        };
        let looks = AtomicUsize::new(0);
        let stopped = || looks.fetch_add(1, Ordering::Relaxed) >= 5;
        let error = describe_all(&entries, &First, Limits::default(), &stopped, take).unwrap_err();
        assert!(
            matches!(error, Error::Library(metra::Error::Interrupted)),
            "{error}"
        );
        assert!(taken <= 6, "{taken}");
    }
}
