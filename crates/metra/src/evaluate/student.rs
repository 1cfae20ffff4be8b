//! Quantiles of Student's t, for intervals over few clusters.
//!
//! With t = √ν · tan θ the chance that |t| is below a bound is the integral of cos^(ν − 1) θ from 0
//! to the bound's θ, over the same from 0 to π/2 (ν degrees of freedom, not necessarily whole). One
//! sum along θ gives all of it: no gamma function and no search for a root.

/// Steps of the sum. The error of the trapezoids is about 1e-5 of the quantile.
const STEPS: usize = 2000;

/// The bound that |t| keeps with this chance; fewer degrees of freedom than one count as one.
pub(super) fn two_sided(level: f64, degrees: f64) -> f64 {
    let degrees = degrees.max(1.0);
    // For many degrees all of the integral lies near 0: beyond 12 deviations nothing is left.
    let end = std::f64::consts::FRAC_PI_2.min(12.0 / degrees.sqrt());
    let step = end / STEPS as f64;
    let density = |place: usize| (place as f64 * step).cos().max(0.0).powf(degrees - 1.0);
    let areas: Vec<f64> = (0..STEPS)
        .map(|place| (density(place) + density(place + 1)) / 2.0)
        .collect();
    let mut wanted = level * areas.iter().sum::<f64>();
    for (place, area) in areas.iter().enumerate() {
        if wanted <= *area {
            let within = if *area > 0.0 { wanted / area } else { 0.0 };
            return degrees.sqrt() * ((place as f64 + within) * step).tan();
        }
        wanted -= area;
    }
    degrees.sqrt() * end.tan()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_tables() {
        // Two-sided values as in any table of Student's t; infinitely many degrees are the normal
        // distribution. The last row is a level as Bonferroni asks for.
        for (level, degrees, expected) in [
            (0.95, 1.0, 12.7062),
            (0.95, 2.0, 4.3027),
            (0.95, 5.0, 2.5706),
            (0.95, 10.0, 2.2281),
            (0.95, 25.0, 2.0595),
            (0.95, 99.0, 1.9842),
            (0.95, 1e9, 1.959964),
            (0.99, 10.0, 3.1693),
            (0.999, 9.0, 4.7809),
        ] {
            let found = two_sided(level, degrees);
            assert!((found / expected - 1.0).abs() < 1e-4, "{degrees}: {found}");
        }
        assert!(two_sided(0.95, 0.2) == two_sided(0.95, 1.0));
        let between = two_sided(0.95, 10.5);
        assert!(two_sided(0.95, 11.0) < between && between < two_sided(0.95, 10.0));
    }
}
