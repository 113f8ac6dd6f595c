//! Thousands of points as few as can be seen: of those in a column of pixels the first, the last, the
//! lowest and the highest. So a peak of a single point stays.

/// A point on the drawing; none where the curve has a gap.
pub(super) type Spot = Option<(f64, f64)>;

/// Points a pixel column, above which there is something to gain.
const WORTHWHILE: usize = 2;

/// The points to be drawn, in order, columns being `column` wide.
pub(super) fn thinned(spots: Vec<Spot>, width: f64, column: f64) -> Vec<Spot> {
    if spots.len() as f64 <= WORTHWHILE as f64 * width / column {
        return spots;
    }
    let mut kept = Vec::new();
    let mut at = 0;
    while at < spots.len() {
        let Some((x, _)) = spots[at] else {
            // A gap, however long, is one gap.
            if kept.last().is_some_and(Option::is_some) {
                kept.push(None);
            }
            at += 1;
            continue;
        };
        let here = (x / column).floor();
        let run = spots[at..]
            .iter()
            .take_while(|spot| spot.is_some_and(|(x, _)| (x / column).floor() == here));
        let end = at + run.count();
        for index in extremes(&spots[at..end]) {
            kept.push(spots[at + index]);
        }
        at = end;
    }
    kept
}

/// Indices of the first, the last, the lowest and the highest point, in order, each once.
fn extremes(spots: &[Spot]) -> Vec<usize> {
    let height = |&index: &usize| spots[index].map_or(f64::NAN, |(_, y)| y);
    let all = || 0..spots.len();
    let by_height = |a: &usize, b: &usize| height(a).total_cmp(&height(b));
    let mut found: Vec<usize> = [
        Some(0),
        all().min_by(by_height),
        all().max_by(by_height),
        spots.len().checked_sub(1),
    ]
    .into_iter()
    .flatten()
    .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_lowest_and_the_highest_of_every_column_stay(
            heights in prop::collection::vec(prop::option::weighted(0.95, 0.0..100.0), 200..3000),
        ) {
            let (width, column) = (50.0, 1.0);
            let step = width / heights.len() as f64;
            let spots: Vec<Spot> = heights.iter().enumerate()
                .map(|(i, y)| y.map(|y| (i as f64 * step, y)))
                .collect();
            let kept = thinned(spots.clone(), width, column);
            for c in 0..50 {
                let within = |spots: &[Spot]| -> Vec<f64> {
                    let spots = spots.iter().flatten();
                    spots.filter(|(x, _)| x.floor() as i32 == c).map(|(_, y)| *y).collect()
                };
                let (before, after) = (within(&spots), within(&kept));
                let low = |v: &[f64]| v.iter().copied().fold(f64::INFINITY, f64::min);
                let high = |v: &[f64]| v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                prop_assert_eq!(low(&before), low(&after));
                prop_assert_eq!(high(&before), high(&after));
            }
            // Nothing is invented and nothing changes its place.
            let mut rest = spots.iter();
            for spot in kept.iter().flatten() {
                prop_assert!(rest.any(|s| s.as_ref() == Some(spot)));
            }
        }
    }

    #[test]
    fn many_points_become_few() {
        let spots = (0..100_000).map(|i| Some((f64::from(i) / 200.0, f64::from(i % 97))));
        let kept = thinned(spots.collect(), 500.0, 1.0);
        assert!(kept.len() <= 2000, "{}", kept.len());
    }

    #[test]
    fn few_points_stay() {
        let spots = vec![Some((0.0, 1.0)), None, Some((1.0, 2.0))];
        assert_eq!(thinned(spots.clone(), 500.0, 1.0), spots);
    }
}
