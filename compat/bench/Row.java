package kraftd.bench;

import java.util.Locale;

/** A line of the table; a figure that does not exist is NaN. */
record Row(String measure, String unit, String expected, double kraftd, double java,
        String target) {
    String tsv() {
        return String.join("\t", measure, unit, expected, text(kraftd), text(java), target);
    }

    private static String text(double value) {
        if (Double.isNaN(value)) {
            return "-";
        }
        String format = value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f";
        return String.format(Locale.ROOT, format, value);
    }
}
