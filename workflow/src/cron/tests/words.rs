//! Schedules in words.

use super::cron;

#[test]
fn schedules_are_described_in_words() {
    for (source, words) in [
        // Every minute, and each nth.
        ("* * * * *", "every minute"),
        ("*/1 * * * *", "every minute"),
        ("0-59 0-23 * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("*/30 * * * *", "every 30 minutes"),
        ("*/45 * * * *", "at minutes 0 and 45 past every hour"),
        ("*/59 * * * *", "at minutes 0 and 59 past every hour"),
        ("* */13 * * *", "every minute of hours 0 and 13"),
        ("* */12 * * *", "every minute of every 12th hour"),
        ("0 0 */30 * *", "at 00:00, on days 1 and 31 of the month"),
        ("*/7 * * * *", "every 7th minute of every hour"),
        ("*/22 * * * *", "every 22nd minute of every hour"),
        (
            "3/10 * * * *",
            "every 10th minute from 3 to 53 of every hour",
        ),
        ("10-20 * * * *", "every minute from 10 to 20 of every hour"),
        (
            "10-40/15 * * * *",
            "every 15th minute from 10 to 40 of every hour",
        ),
        // At a minute.
        ("0 * * * *", "at minute 0 past every hour"),
        ("5 */2 * * *", "at minute 5 past every 2nd hour"),
        ("5 */3 * * *", "at minute 5 past every 3rd hour"),
        ("5 */5 * * *", "at 00:05, 05:05, 10:05, 15:05 and 20:05"),
        (
            "5 1/2 * * *",
            "at minute 5 past every 2nd hour from 1 to 23",
        ),
        ("0 9-17 * * *", "at minute 0 past every hour from 9 to 17"),
        (
            "0,30 9-17 * * *",
            "every 30 minutes of every hour from 9 to 17",
        ),
        (
            "0 0,1,2,3,5,7,11 * * *",
            "at minute 0 past hours 0, 1, 2, 3, 5, 7 and 11",
        ),
        (
            "5,10,20 */4 * * *",
            "at minutes 5, 10 and 20 past every 4th hour",
        ),
        ("1,2 * * * *", "at minutes 1 and 2 past every hour"),
        // Every minute of some hours.
        ("* 3 * * *", "every minute of hour 3"),
        ("* */2 * * *", "every minute of every 2nd hour"),
        (
            "*/15 9-17 * * *",
            "every 15 minutes of every hour from 9 to 17",
        ),
        ("*/15 8,20 * * *", "every 15 minutes of hours 8 and 20"),
        // At times.
        ("30 3 * * *", "at 03:30"),
        ("0 0,12 * * *", "at 00:00 and 12:00"),
        ("0 */6 * * *", "at 00:00, 06:00, 12:00 and 18:00"),
        ("15,45 2 * * *", "at 02:15 and 02:45"),
        // Days.
        ("30 3 * * 1,5", "at 03:30, on Monday and Friday"),
        ("30 3 * * 1-5", "at 03:30, on Monday to Friday"),
        ("30 3 * * 0", "at 03:30, on Sunday"),
        ("30 3 * * 7", "at 03:30, on Sunday"),
        ("30 3 * * 6,7", "at 03:30, on Sunday and Saturday"),
        (
            "30 3 * * */2",
            "at 03:30, on Sunday, Tuesday, Thursday and Saturday",
        ),
        ("0 0 1 * *", "at 00:00, on day 1 of the month"),
        (
            "0 0 1,15 1 *",
            "at 00:00, on days 1 and 15 of the month, in January",
        ),
        ("0 0 1-7 * *", "at 00:00, on days 1 to 7 of the month"),
        ("0 0 */2 * *", "at 00:00, on every 2nd day of the month"),
        (
            "0 0 10-20/5 * *",
            "at 00:00, on every 5th day from 10 to 20 of the month",
        ),
        ("0 0 1-31 * *", "at 00:00, on every day of the month"),
        (
            "0 0 13 * 5",
            "at 00:00, on day 13 of the month or on Friday",
        ),
        (
            "0 0 */10 * 1-5",
            "at 00:00, on every 10th day of the month or on Monday to Friday",
        ),
        // Months.
        ("0 0 * 6-8 *", "at 00:00, in June to August"),
        (
            "0 0 1 */3 *",
            "at 00:00, on day 1 of the month, in January, April, July and October",
        ),
        ("0 0 * 2,12 *", "at 00:00, in February and December"),
        ("0 0 1 1-12 *", "at 00:00, on day 1 of the month"),
        (
            "*/20 6-8 29 2 *",
            "every 20 minutes of every hour from 6 to 8, on day 29 of the month, in February",
        ),
    ] {
        assert_eq!(cron(source).describe(), words, "`{source}`");
    }
}
