//! Parses templates. The parser of `minijinja` recurses without a limit over some chains (`not not …`, `a if b else …`),
//! and the trees of others are as deep as the chain is long (`a + a + …`). Texts with too much of that are refused before
//! they are parsed.

use minijinja::machinery::ast::{Expr, Stmt};
use minijinja::machinery::{Token, WhitespaceConfig, parse, parse_expr, tokenize};
use minijinja::syntax::SyntaxConfig;

/// Tokens inside of one pair of braces.
const MAX_TOKENS: usize = 1000;
/// Tokens among them that the parser recurses for.
const MAX_NESTING: usize = 100;

/// Parses a text with templates in it.
pub(super) fn template(text: &str) -> Result<Stmt<'_>, String> {
    check_size(text, false)?;
    parse(text, "template", SyntaxConfig, WhitespaceConfig::default()).map_err(|error| explain(&error))
}

/// Parses an expression. `minijinja` panics over what follows a `}}` that closes nothing, so that is refused first.
pub(super) fn expression(text: &str) -> Result<Expr<'_>, String> {
    if closes_nothing(text) {
        return Err("`}}` closes nothing here".to_owned());
    }
    check_size(text, true)?;
    parse_expr(text).map_err(|error| explain(&error))
}

fn check_size(text: &str, is_expression: bool) -> Result<(), String> {
    let (mut tokens, mut nesting, mut branches) = (0, 0, 0);
    for token in tokenize(text, is_expression, SyntaxConfig, WhitespaceConfig::default()) {
        // The parser reports what cannot be read.
        let Ok((token, _)) = token else { return Ok(()) };
        match token {
            Token::VariableStart | Token::BlockStart => (tokens, nesting) = (0, 0),
            Token::Ident("elif") => branches += 1,
            Token::Ident("not" | "if" | "else") | Token::Minus => nesting += 1,
            _ => {}
        }
        tokens += 1;
        if tokens > MAX_TOKENS || nesting > MAX_NESTING || branches > MAX_NESTING {
            return Err("it is too long".to_owned());
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

/// The message in one line, without the name that `minijinja` gives to templates.
pub(super) fn explain(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}
