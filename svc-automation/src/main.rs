//! Runs the service.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    chassis::service::main::<svc_automation::Automation>()
}
