//! Reads templates. The parser of the engine recurses without a limit over some chains (`not not …`, `a if b else …`)
//! and builds trees that are as deep as others are long (`a + a + …`), so texts with too much of that do not come to it.

use minijinja::machinery::ast::{Expr, Stmt};
use minijinja::machinery::{Token, WhitespaceConfig, parse, parse_expr, tokenize};
use minijinja::syntax::SyntaxConfig;

/// Words and signs inside of one pair of braces.
const MAX_TOKENS: usize = 1000;
/// Those among them that lead the parser deeper.
const MAX_NESTING: usize = 100;

/// A text with templates in it.
pub(super) fn template(text: &str) -> Result<Stmt<'_>, String> {
    bound(text, false)?;
    parse(text, "template", SyntaxConfig, WhitespaceConfig::default()).map_err(|error| explain(&error))
}

/// An expression. The engine panics over what follows a `}}` that closes nothing, so such a text does not come to it.
pub(super) fn expression(text: &str) -> Result<Expr<'_>, String> {
    if closes_nothing(text) {
        return Err("`}}` closes nothing here".to_owned());
    }
    bound(text, true)?;
    parse_expr(text).map_err(|error| explain(&error))
}

fn bound(text: &str, is_expression: bool) -> Result<(), String> {
    let (mut tokens, mut nesting, mut branches) = (0, 0, 0);
    for token in tokenize(text, is_expression, SyntaxConfig, WhitespaceConfig::default()) {
        // What cannot be read is told by the parser.
        let Ok((token, _)) = token else { return Ok(()) };
        match token {
            Token::VariableStart | Token::BlockStart => (tokens, nesting) = (0, 0),
            Token::Ident("elif") => branches += 1,
            Token::Ident("not" | "if" | "else") | Token::Minus => nesting += 1,
            _ => {}
        }
        tokens += 1;
        if tokens > MAX_TOKENS || nesting > MAX_NESTING || branches > MAX_NESTING {
            return Err("it is too long to be read".to_owned());
        }
    }
    Ok(())
}

/// Whether an expression has a `}}` outside of texts and brackets.
fn closes_nothing(expression: &str) -> bool {
    let (mut depth, mut bytes) = (0_isize, expression.bytes().peekable());
    while let Some(byte) = bytes.next() {
        match byte {
            b'}' if depth == 0 && bytes.peek() == Some(&b'}') => return true,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b'"' | b'\'' => {
                while let Some(inside) = bytes.next().filter(|inside| *inside != byte) {
                    if inside == b'\\' {
                        bytes.next();
                    }
                }
            }
            _ => {}
        }
    }
    false
}

/// In one line, without what the engine calls its templates.
pub(super) fn explain(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}
