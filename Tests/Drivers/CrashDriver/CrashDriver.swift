import Glibc
import TestKit

/// The program, which performs one run or is a worker of it.
@main
struct CrashDriver {
    static func main() {
        DriverProgram.main(help: Options.help) { (words) throws(OptionValue.Invalid) in
            let options = try Options(words)
            if let worker = options.worker {
                guard let directory = options.directory else { exit(2) }
                FileWorker(directory: directory, seed: options.seed, life: options.life, number: worker)
                    .run(count: options.operations)
            } else if options.mode == .full && options.journalDirectory == nil {
                Namespace.enter(words, kills: options.kills)
            } else {
                DriverProgram.run(options.title, options.command, in: options.directory, name: "crash") {
                    (directory) throws(DriverFailure) in
                    var run = try CrashRun(options, in: directory)
                    return try run.run()
                }
            }
        }
    }
}
