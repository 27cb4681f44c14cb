//! Transcoding against prost-reflect as the oracle, and tables of what a person would try.

#[cfg(test)]
mod contract;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod responses;
#[cfg(test)]
mod scramble;
#[cfg(test)]
mod support;
#[cfg(test)]
mod unknown;
