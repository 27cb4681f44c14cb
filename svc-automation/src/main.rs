//! Runs the service.

fn main() -> std::process::ExitCode {
    chassis::service::main::<svc_automation::Automation>()
}
