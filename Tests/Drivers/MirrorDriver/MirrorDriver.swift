import Glibc
import System
import TestKit

/// The program, which performs one run or is a worker of it.
@main
struct MirrorDriver {
    static func main() {
        DriverProgram.main(help: Options.help) { (words) throws(OptionValue.Invalid) in
            let options = try Options(words)
            if let worker = options.worker { return work(options, worker) }
            DriverProgram.run(options.title, options.command, in: options.directory, name: "mirror") {
                (directory) throws(DriverFailure) in
                var driver = Driver(options, in: directory)
                return try driver.run()
            }
        }
    }

    private static func work(_ options: Options, _ worker: Int) {
        guard let directory = options.directory else { exit(2) }
        let generator = OperationGenerator(
            seed: options.seed, round: options.round, worker: worker, hidesDirectories: options.mode == .unreadable)
        Worker(tree: directory.appending("tree"), name: "round \(options.round) worker \(worker)").run(
            generator, count: options.operations, without: options.without)
    }
}
