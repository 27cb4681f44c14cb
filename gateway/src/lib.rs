pub mod openapi;
pub mod pages;
