import Glibc
import Simulation

/// Runs the core in simulated worlds and prints failures.
struct Simulator {
    private var first: UInt64 = 1
    private var runs = UInt64.max
    private var steps = 200
    private var seconds = 60
    private var seed: UInt64?
    private var scripted: String?
    private var isVerbose = false
    private var keepsGoing = false
    private var known: Set<UInt64> = []
    private var isFaulty = false

    private static let help = """
        usage: simulator [--first N] [--runs N] [--steps N] [--seconds N] [--keep-going] [--known SEED,SEED...]
               simulator --seed N [--steps N] [--faulty] [-v]
               simulator --scripted [NAME] [-v]

        Performs new runs of the core in simulated worlds, until one fails or for 60 seconds. A seed determines
        everything that happens in its run. A failing run is shrunk to the steps that matter, which can be copied into
        CoreCases.swift or FeatureCases.swift; Step.swift and Operation.swift define the words.
        Exit status: 0 if all runs pass, 1 if one fails, 2 for an invalid command line.

          --first       the seed of the first run; the next ones follow (default: 1)
          --runs        the number of runs (default: no limit)
          --steps       the number of steps of each run (default: 200)
          --seconds     the time limit (default: 60; none with --runs)
          --keep-going  continues after a failure, and counts the failures by kind
          --known       the seeds of runs that must fail, and are not counted
          --seed        performs the run of one seed
          --scripted    runs the written cases, or one of them
          --faulty      a watcher that reports only new paths, to test the checks
          -v            prints all that happens in the run

        The digest covers everything that actions received, and is equal for equal runs.
        """

    init(_ arguments: ArraySlice<String>) {
        var rest = arguments
        func fail(_ text: String) -> Never {
            print("simulator: \(text)")
            exit(2)
        }
        while let option = rest.popFirst() {
            func number() -> Int {
                guard let text = rest.popFirst(), let number = Int(text), number >= 0 else {
                    fail("\(option) requires a number")
                }
                return number
            }
            switch option {
            case "--first": first = UInt64(number())
            case "--runs":
                runs = UInt64(number())
                seconds = .max
            case "--steps": steps = number()
            case "--seconds": seconds = number()
            case "--seed": seed = UInt64(number())
            case "--scripted":
                scripted = rest.first.map { $0.hasPrefix("-") ? "" : $0 } ?? ""
                if scripted != "" { rest.removeFirst() }
            case "--keep-going": keepsGoing = true
            case "--known":
                let seeds = (rest.popFirst() ?? "").split(separator: ",").map { UInt64($0) }
                guard seeds.allSatisfy({ $0 != nil }) else { fail("\(option) requires seeds, separated by commas") }
                known = Set(seeds.compactMap(\.self))
            case "--faulty": isFaulty = true
            case "-v": isVerbose = true
            case "--help":
                print(Self.help)
                exit(0)
            default: fail("unknown option '\(option)'")
            }
        }
    }

    func run() -> Int32 {
        if let scripted { return runScripted(scripted) }
        if let seed { return report(RandomRun(seed: seed, steps: steps, isFaulty: isFaulty)) }
        let clock = ContinuousClock()
        let start = clock.now
        var done: UInt64 = 0
        var operations = 0
        var digest: UInt64 = 0xCBF2_9CE4_8422_2325
        var kinds: [String: [UInt64]] = [:]
        while done < runs, clock.now - start < .seconds(seconds) {
            let run = RandomRun(seed: first + done, steps: steps, isFaulty: isFaulty)
            done += 1
            operations += run.steps.count
            digest = digest &* 0x100_0000_01B3 ^ run.digest
            let isKnown = known.contains(run.seed)
            guard let failure = run.failure ?? (isKnown ? "seed \(run.seed) is known to fail, but passes" : nil),
                !isKnown || run.failure == nil
            else { continue }
            if !keepsGoing {
                print("after \(done) runs, \(clock.now - start):")
                return report(run)
            }
            let kind = RandomRun.kind(of: failure)
            if kinds[kind] == nil { print("after \(done) runs, \(clock.now - start): seed \(run.seed): \(failure)") }
            kinds[kind, default: []].append(run.seed)
        }
        let duration = clock.now - start
        let rate = Int(Double(operations) / (duration / .seconds(1)))
        let failures = kinds.values.reduce(0) { $0 + $1.count }
        print("\(done) runs, \(operations) steps in \(duration), \(rate) steps per second, \(failures) failures")
        print("digest \(String(digest, radix: 16))")
        for (kind, seeds) in kinds.sorted(by: { $0.value.count > $1.value.count }) {
            print("  \(seeds.count) × \(kind): seeds \(seeds.prefix(8).map(String.init).joined(separator: " "))")
        }
        return failures == 0 ? 0 : 1
    }

    private func report(_ run: RandomRun) -> Int32 {
        guard let failure = run.failure else {
            print("seed \(run.seed) passes")
            return 0
        }
        print("seed \(run.seed): \(failure)")
        for rule in run.rules { print("  \(rule)") }
        if run.delays { print("  with delays") }
        if !run.hasBirth { print("  without birth times") }
        let steps = run.shrunk()
        print("shrunk from \(run.steps.count) to \(steps.count) steps:")
        print("  " + steps.map(\.description).joined(separator: ", "))
        let again = run.makeRun()
        if isVerbose { again.trace = { print("    \($0)") } }
        print(again.run(steps) ?? "it passes when it is repeated")
        return 1
    }

    private func runScripted(_ name: String) -> Int32 {
        var failures = 0
        let cases = ScriptedCase.all.filter { name.isEmpty || $0.name == name }
        for scripted in cases {
            var trace: (@Sendable (String) -> Void)?
            if isVerbose { trace = { print("    \($0)") } }
            if let failure = scripted.run(trace: trace) {
                failures += 1
                print("\(scripted.name): \(failure)")
            }
        }
        print("\(cases.count) cases, \(failures) failures")
        return failures == 0 ? 0 : 1
    }
}
