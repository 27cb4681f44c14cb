//! Writes drawings into the PDF.

use krilla::color::rgb;
use krilla::geom::{Path, PathBuilder, Point, Rect, Size, Transform};
use krilla::paint::{Fill, Stroke};
use krilla::surface::Surface;

use super::fragment::{Drawing, Fragment, Shape};
use super::tags::Tags;
use crate::color::{BLACK, Color};
use crate::typeset::{CAPITAL, Paragraph};

/// Draws a page. Neighbours of the same role become one tagged piece of content.
pub(super) fn page(page: &Fragment, surface: &mut Surface, tags: &mut Tags) {
    for group in page.drawings.chunk_by(|one, next| one.role == next.role) {
        let Some(first) = group.first() else { continue };
        tags.draw(first.role, surface, |surface| group.iter().for_each(|drawing| draw(drawing, surface)));
    }
}

fn draw(drawing: &Drawing, surface: &mut Surface) {
    let (x, y) = (drawing.x, drawing.y);
    match &drawing.shape {
        Shape::Line(text, line) => glyphs(text, *line, x, y, surface),
        Shape::Box { width, height, radius, color } => {
            fill(surface, *color);
            if let Some(path) = rounded(x, y, *width, *height, *radius) {
                surface.draw_path(&path);
            }
        }
        Shape::Rule { width, thickness, color } => rule(x, y, *width, *thickness, *color, surface),
        Shape::Logo { picture, width, height } => {
            if let Some(size) = Size::from_wh(*width, *height) {
                surface.push_transform(&Transform::from_translate(x, y));
                picture.draw(surface, size);
                surface.pop();
            }
        }
        Shape::Code(path) => {
            fill(surface, BLACK);
            surface.push_transform(&Transform::from_translate(x, y));
            surface.draw_path(path);
            surface.pop();
        }
        Shape::Watermark(text, angle) => {
            surface.push_transform(&Transform::from_rotate_at(*angle, x, y));
            glyphs(text, 0, x - text.width() / 2.0, y + text.style.size * CAPITAL / 2.0, surface);
            surface.pop();
        }
    }
}

fn glyphs(text: &Paragraph, line: usize, x: f32, y: f32, surface: &mut Surface) {
    fill(surface, text.style.color);
    for run in text.lines.get(line).into_iter().flat_map(|line| &line.runs) {
        let start = Point::from_xy(x + run.x, y);
        surface.draw_glyphs(start, &run.glyphs, run.face.font.clone(), &text.text, text.style.size, false);
    }
}

fn rule(x: f32, y: f32, width: f32, thickness: f32, color: Color, surface: &mut Surface) {
    let paint = paint(color).into();
    surface.set_fill(None);
    surface.set_stroke(Some(Stroke { paint, width: thickness, ..Stroke::default() }));
    let mut path = PathBuilder::new();
    path.move_to(x, y);
    path.line_to(x + width, y);
    if let Some(path) = path.finish() {
        surface.draw_path(&path);
    }
}

fn paint(Color(red, green, blue): Color) -> rgb::Color {
    rgb::Color::new(red, green, blue)
}

fn fill(surface: &mut Surface, color: Color) {
    surface.set_stroke(None);
    surface.set_fill(Some(Fill { paint: paint(color).into(), ..Fill::default() }));
}

fn rounded(x: f32, y: f32, width: f32, height: f32, radius: f32) -> Option<Path> {
    let mut path = PathBuilder::new();
    let (right, bottom) = (x + width, y + height);
    if radius <= 0.0 {
        path.push_rect(Rect::from_xywh(x, y, width, height)?);
        return path.finish();
    }
    // How far the handles of a curve are from the corner for a quarter of a circle.
    let handle = radius * 0.447_7;
    path.move_to(x + radius, y);
    path.line_to(right - radius, y);
    path.cubic_to(right - handle, y, right, y + handle, right, y + radius);
    path.line_to(right, bottom - radius);
    path.cubic_to(right, bottom - handle, right - handle, bottom, right - radius, bottom);
    path.line_to(x + radius, bottom);
    path.cubic_to(x + handle, bottom, x, bottom - handle, x, bottom - radius);
    path.line_to(x, y + radius);
    path.cubic_to(x, y + handle, x + handle, y, x + radius, y);
    path.close();
    path.finish()
}
