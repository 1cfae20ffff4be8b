//! People as coloured figures, seen by two cameras: a small world for re-identification whose truth is
//! known, which nobody's face is in.
//!
//! A person has skin, hair, a coat that is plain, striped or in two halves, trousers or a skirt, shoes and
//! perhaps a bag. An image adds what is not the person: where they stand and how far away, how their legs
//! are set, the ground and the wall behind them, the light and the noise. Camera b is darker and colder
//! than camera a and sees other walls, and light differs from image to image. So the colours of one
//! person in two cameras are farther apart than those of two persons in one, and what says least about
//! the person changes most.

use metra::internal::Stream;
use metra_images::Picture;

/// Pixels across and down.
pub(crate) const SIZE: (usize, usize) = (48, 128);

/// The cameras' names.
pub(crate) const CAMERAS: [&str; 2] = ["a", "b"];

type Colour = [f64; 3];

/// Colours that people wear: many greys and blues, few bright ones.
const WORN: [Colour; 14] = [
    [0.13, 0.13, 0.15],
    [0.30, 0.30, 0.33],
    [0.55, 0.55, 0.57],
    [0.86, 0.85, 0.82],
    [0.12, 0.17, 0.34],
    [0.22, 0.33, 0.55],
    [0.45, 0.58, 0.72],
    [0.44, 0.31, 0.21],
    [0.68, 0.56, 0.40],
    [0.60, 0.14, 0.16],
    [0.79, 0.45, 0.22],
    [0.22, 0.38, 0.25],
    [0.47, 0.25, 0.45],
    [0.80, 0.70, 0.25],
];

/// What a person looks like anywhere.
struct Person {
    skin: Colour,
    hair: Colour,
    long_hair: bool,
    coat: Colour,
    second: Colour,
    pattern: u64,
    legs: Colour,
    skirt: bool,
    shoes: Colour,
    bag: Option<(Colour, bool)>,
    width: f64,
}

impl Person {
    fn new(seed: u64, number: u64) -> Self {
        let mut draw = Stream::new(seed, "person", number);
        let skin = 0.45 + 0.45 * draw.unit();
        let hair = 0.08 + 0.45 * draw.unit().powi(2);
        Person {
            skin: [skin, skin * 0.80, skin * 0.66],
            hair: [hair, hair * 0.78, hair * 0.55],
            long_hair: draw.below(3) == 0,
            coat: worn(&mut draw),
            second: worn(&mut draw),
            pattern: draw.below(4),
            legs: worn(&mut draw),
            skirt: draw.below(5) == 0,
            shoes: worn(&mut draw),
            bag: (draw.below(2) == 0).then(|| (worn(&mut draw), draw.below(2) == 0)),
            width: 0.85 + 0.3 * draw.unit(),
        }
    }

    fn coat_at(&self, across: f64, down: f64) -> Colour {
        let second = match self.pattern {
            // Stripes across, or an upper and a lower half; else it is plain.
            1 => (down * 6.0).fract() < 0.4,
            2 => down > 0.5,
            _ => false,
        };
        // Or a coat that is open over something else.
        let open = self.pattern == 3 && across.abs() < 0.25;
        if second || open {
            self.second
        } else {
            self.coat
        }
    }
}

/// A colour that is worn, never quite the same.
fn worn(draw: &mut Stream) -> Colour {
    let colour = WORN[draw.below(WORN.len() as u64) as usize];
    let lighter = 0.85 + 0.3 * draw.unit();
    colour.map(|value| (value * lighter + 0.02 * draw.normal()).clamp(0.02, 0.97))
}

/// The image of a person in a camera, 0 or 1.
pub(crate) fn image(seed: u64, person: u64, camera: usize) -> Picture {
    let who = Person::new(seed, person);
    let mut draw = Stream::new(seed, "image", 2 * person + camera as u64);
    let (width, height) = SIZE;
    // Where they stand, in pixels: a head's height, the middle and the top.
    let head = 15.0 + 2.0 * draw.normal().clamp(-1.5, 1.5);
    let middle = width as f64 / 2.0 + 2.5 * draw.normal().clamp(-2.0, 2.0);
    let top = 5.0 + 5.0 * draw.unit();
    let stride = draw.unit();
    let turned = draw.below(2) == 0;
    let wall = background(&mut draw, camera);
    let ground = background(&mut draw, camera);
    let horizon = 70.0 + 30.0 * draw.unit();
    let texture = (0.15 + 0.3 * draw.unit(), draw.unit());
    let light = Light::new(&mut draw, camera);
    let mut bytes = Vec::with_capacity(3 * width * height);
    for y in 0..height {
        for x in 0..width {
            // The person's own measure: down in heads, across in heads to the right of the middle.
            let down = (y as f64 - top) / head;
            let across = (x as f64 - middle) / head / who.width;
            let seen = figure(&who, across, down, stride, turned).unwrap_or_else(|| {
                let base = if (y as f64) < horizon { wall } else { ground };
                let wave = ((x as f64 * texture.0 + texture.1 * y as f64).sin() * 0.06) + 1.0;
                base.map(|value| value * wave)
            });
            let place = (x as f64 / width as f64, y as f64 / height as f64);
            for value in light.on(seen, place) {
                let noisy = value + 0.03 * draw.normal();
                bytes.push((noisy.clamp(0.0, 1.0) * 255.0).round() as u8);
            }
        }
    }
    Picture::from_raw(width as u32, height as u32, bytes).expect("three bytes a pixel")
}

/// The colour of the person at a place; `None` beside them.
fn figure(who: &Person, across: f64, down: f64, stride: f64, turned: bool) -> Option<Colour> {
    let ellipse = |x: f64, y: f64, wide: f64, high: f64| {
        ((across - x) / wide).powi(2) + ((down - y) / high).powi(2) < 1.0
    };
    if let Some((colour, left)) = who.bag {
        // Seen from the other side a bag hangs on the other shoulder.
        let side = if left != turned { -0.85 } else { 0.85 };
        if (across - side).abs() < 0.32 && (2.3..3.4).contains(&down) {
            return Some(colour);
        }
    }
    if ellipse(0.0, 0.32, 0.44, 0.34) {
        return Some(who.hair);
    }
    if who.long_hair && across.abs() < 0.46 && (0.3..1.15).contains(&down) && across.abs() > 0.3 {
        return Some(who.hair);
    }
    if ellipse(0.0, 0.55, 0.38, 0.48) {
        return Some(who.skin);
    }
    let shoulder = 0.45 + 0.45 * ((down - 1.0) / 0.35).clamp(0.0, 1.0);
    if (1.0..3.5).contains(&down) && across.abs() < shoulder {
        // Hands at the ends of the sleeves.
        if down > 3.2 && across.abs() > 0.66 {
            return Some(who.skin);
        }
        return Some(who.coat_at(across, (down - 1.0) / 2.5));
    }
    let apart = 0.16 + 0.35 * stride * ((down - 3.5) / 3.0).clamp(0.0, 1.0);
    let leg = (across.abs() - apart - 0.1).abs() < 0.25 || across.abs() < 0.4 && down < 4.2;
    if (3.5..7.0).contains(&down) {
        if who.skirt {
            if down < 5.0 && across.abs() < 0.6 + 0.2 * (down - 3.5) {
                return Some(who.legs);
            }
            return (leg && down >= 5.0).then_some(if down > 6.7 { who.shoes } else { who.skin });
        }
        if leg {
            return Some(if down > 6.7 { who.shoes } else { who.legs });
        }
    }
    None
}

fn background(draw: &mut Stream, camera: usize) -> Colour {
    let grey = 0.35 + 0.45 * draw.unit();
    let tone = 0.06 * draw.normal();
    match camera {
        0 => [grey + 0.05 + tone, grey, grey - 0.08],
        _ => [grey - 0.10, grey + 0.03, grey - 0.04 + tone],
    }
}

/// How a camera sees, which differs a little from image to image.
struct Light {
    gain: Colour,
    gamma: f64,
    haze: f64,
    /// A shadow from one side.
    shade: (f64, f64),
}

impl Light {
    fn new(draw: &mut Stream, camera: usize) -> Self {
        let (gain, gamma, haze) = match camera {
            0 => ([1.08, 1.0, 0.86], 0.95, 0.02),
            _ => ([0.66, 0.74, 0.86], 1.15, 0.06),
        };
        let bright = (0.14 * draw.normal()).exp();
        Light {
            gain: gain.map(|value: f64| value * bright * (0.04 * draw.normal()).exp()),
            gamma: gamma * (0.06 * draw.normal()).exp(),
            haze,
            shade: (0.35 * draw.normal(), 0.25 * draw.unit()),
        }
    }

    fn on(&self, colour: Colour, (across, down): (f64, f64)) -> Colour {
        let shade = 1.0 + self.shade.0 * (across - 0.5) - self.shade.1 * (down - 0.5);
        let mut out = [0.0; 3];
        for ((out, value), gain) in out.iter_mut().zip(colour).zip(self.gain) {
            let lit = (value * gain * shade).clamp(0.0, 1.0);
            *out = self.haze + (1.0 - self.haze) * lit.powf(self.gamma);
        }
        out
    }
}
