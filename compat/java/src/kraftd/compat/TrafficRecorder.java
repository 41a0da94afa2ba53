package kraftd.compat;

import java.nio.file.Path;

/** Records what a broker and a voter say to controllers, and what they hear, in their whole lives. */
public final class TrafficRecorder {
    private TrafficRecorder() {}

    /** Arguments: jars (a folder named as the release), logging configurations, target, lives. */
    public static void main(String[] args) throws Exception {
        Path jars = Path.of(args[0]);
        Path conf = Path.of(args[1]);
        Path target = Path.of(args[2]);
        String release = jars.getFileName().toString();
        for (String life : args[3].split(",")) {
            Recording recording = new Recording();
            try (Servers servers = new Servers(jars, conf)) {
                switch (life) {
                    case "broker" -> new BrokerLife(servers, recording).live();
                    case "voter" -> new VoterLife(servers, recording).live();
                    case "quorum" -> new QuorumLife(servers, recording).live();
                    default -> throw new IllegalArgumentException("no such life: " + life);
                }
            }
            recording.write(target.resolve(life + ".tsv"), "Kafka " + release + ": a " + life + "'s life");
        }
    }
}
