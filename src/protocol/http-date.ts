const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

const clock = '(?<hour>[01][0-9]|2[0-3]):(?<minute>[0-5][0-9]):(?<second>[0-5][0-9]|60)';
const month = `(?<month>${months.join('|')})`;
const shortDay = `(?<weekday>${days.map((day) => day.slice(0, 3)).join('|')})`;

/** The three forms of RFC 9110 §5.6.7: IMF-fixdate and the obsolete ones of RFC 850 and asctime. */
const forms = [
  new RegExp(`^${shortDay}, (?<day>[0-9]{2}) ${month} (?<year>[0-9]{4}) ${clock} GMT$`),
  new RegExp(`^(?<weekday>${days.join('|')}), (?<day>[0-9]{2})-${month}-(?<year>[0-9]{2}) ${clock} GMT$`),
  new RegExp(`^${shortDay} ${month} (?<day>[0-9]{2}| [0-9]) ${clock} (?<year>[0-9]{4})$`),
];

/** The time an HTTP date names, in milliseconds since 1970, or undefined for anything else: a 30 February and a wrong weekday too. `Date.parse` takes far more, `"0"` for one. */
export function parseHttpDate(text: string, nowMs: number): number | undefined {
  for (const form of forms) {
    const parts = form.exec(text)?.groups;
    if (parts !== undefined) return timeOf(parts, nowMs);
  }
  return undefined;
}

function timeOf(parts: Record<string, string | undefined>, nowMs: number): number | undefined {
  const day = Number(parts.day);
  const monthIndex = months.indexOf(parts.month as string);
  const year = parts.year as string;
  const fullYear = year.length === 2 ? centuryOf(Number(year), nowMs) : Number(year);
  const date = new Date(0);
  date.setUTCFullYear(fullYear, monthIndex, day);
  if (date.getUTCDate() !== day || date.getUTCMonth() !== monthIndex) return undefined;
  if (!days[date.getUTCDay()]?.startsWith(parts.weekday as string)) return undefined;
  // A leap second (60) becomes the first second after it.
  return date.setUTCHours(Number(parts.hour), Number(parts.minute), Number(parts.second));
}

/** RFC 9110 §5.6.7: a two-digit year more than 50 years ahead lies in the past. */
function centuryOf(year: number, nowMs: number): number {
  const thisYear = new Date(nowMs).getUTCFullYear();
  const candidate = thisYear - (thisYear % 100) + year;
  return candidate > thisYear + 50 ? candidate - 100 : candidate;
}
