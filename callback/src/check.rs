//! Checks what this machine can see of the zones: their delegation, the resolver, the ports and the certificate.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::SystemTime;

use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use listen::ServerTls;
use tokio::time::timeout;

use self::ask::ask;
use crate::limits::{CHECK, PARENT_SERVERS};
use crate::start::Settings;
use crate::zone::Zone;

mod ask;

#[cfg(test)]
mod tests;

/// Where systemd-resolved listens.
const STUB: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 53));

const DNS_PORT: u16 = 53;

const RESOLV_CONF: &str = "/etc/resolv.conf";

/// What is checked.
#[derive(Debug, Clone)]
pub struct Checks {
    pub zones: Vec<Zone>,
    pub public: Vec<IpAddr>,
    /// The bound addresses.
    pub dns: Vec<SocketAddr>,
    pub http: Vec<SocketAddr>,
    pub https: Vec<SocketAddr>,
    pub tls: Option<ServerTls>,
    /// Who is asked, instead of the first name server of `resolv_conf`.
    pub resolver: Option<SocketAddr>,
    pub resolv_conf: PathBuf,
    /// The port of other name servers: 53, except in tests.
    pub server_port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Absent if it is about all zones.
    pub zone: Option<String>,
    pub outcome: Outcome,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Good,
    Bad,
    /// It cannot be seen from here.
    Unknown,
}

/// The findings about one zone, or about all.
struct Findings {
    zone: Option<String>,
    all: Vec<Finding>,
}

impl Findings {
    fn of(zone: Option<&Zone>) -> Self {
        Self {
            zone: zone.map(ToString::to_string),
            all: Vec::new(),
        }
    }

    fn add(&mut self, outcome: Outcome, text: impl Into<String>) {
        self.all.push(Finding {
            zone: self.zone.clone(),
            outcome,
            text: text.into(),
        });
    }

    fn good(&mut self, text: impl Into<String>) {
        self.add(Outcome::Good, text);
    }

    fn bad(&mut self, text: impl Into<String>) {
        self.add(Outcome::Bad, text);
    }
}

impl Checks {
    /// The checks of these settings, with the resolver that this machine uses.
    pub fn new(settings: &Settings, resolver: Option<SocketAddr>) -> Self {
        Self {
            zones: settings.zones.clone(),
            public: settings.public.clone(),
            dns: settings.dns.clone(),
            http: settings.http.clone(),
            https: settings.https.clone(),
            tls: settings.tls.clone(),
            resolver,
            resolv_conf: RESOLV_CONF.into(),
            server_port: DNS_PORT,
        }
    }

    /// Runs all checks, which takes a bounded time. `now` is compared with the end of the certificate.
    pub async fn run(&self, now: SystemTime) -> Vec<Finding> {
        let mut general = Findings::of(None);
        self.ports(&mut general);
        self.certificate(now, &mut general);
        let resolver = self.resolver(&mut general);
        let mut found = general.all;
        if let Some(resolver) = resolver {
            for zone in &self.zones {
                let mut findings = Findings::of(Some(zone));
                let checked = self.zone(zone, resolver, &mut findings);
                if timeout(CHECK, checked).await.is_err() {
                    findings.bad(format!("the checks took longer than {} s", CHECK.as_secs()));
                }
                found.extend(findings.all);
            }
        }
        let mut general = Findings::of(None);
        general.add(
            Outcome::Unknown,
            "whether the internet reaches the ports cannot be seen from here: ask from another network, as with \
             `dig +tcp x.ZONE` and `curl http://x.ZONE/`",
        );
        found.extend(general.all);
        found
    }

    fn ports(&self, findings: &mut Findings) {
        for (service, bound, usual) in [
            ("DNS", &self.dns, DNS_PORT),
            ("HTTP", &self.http, 80),
            ("HTTPS", &self.https, 443),
        ] {
            let shown: Vec<_> = bound.iter().map(ToString::to_string).collect();
            let shown = shown.join(", ");
            if bound.iter().any(|it| it.port() == usual) {
                findings.good(format!("{service} listens on {shown}"));
            } else if !bound.is_empty() {
                let text = format!(
                    "{service} listens on {shown}: something must pass port {usual} of the public addresses on to it"
                );
                findings.add(Outcome::Unknown, text);
            } else if usual == DNS_PORT {
                findings.bad("nothing listens for DNS: the names are not found unless other servers answer for the zones");
            }
        }
    }

    fn certificate(&self, now: SystemTime, findings: &mut Findings) {
        let Some(tls) = &self.tls else { return };
        let Some(certificate) = tls.certificate() else {
            return findings.bad(
                "HTTPS has no certificate yet: `everscan condition list` shows whether an order has failed",
            );
        };
        for zone in &self.zones {
            for host in [zone.to_string(), format!("*.{zone}")] {
                if !certificate.fits(&host) {
                    findings.bad(format!("the certificate is not for {host}"));
                }
            }
        }
        match certificate.validity {
            None => findings.bad("the times of the certificate are not readable"),
            Some(times) => {
                let until = times.until.format("%Y-%m-%d %H:%M UTC");
                let from = times.from.format("%Y-%m-%d %H:%M UTC");
                if SystemTime::from(times.until) <= now {
                    findings.bad(format!("the certificate has expired at {until}"));
                } else if SystemTime::from(times.from) > now {
                    findings.bad(format!("the certificate is not valid before {from}"));
                } else {
                    findings.good(format!("the certificate is valid until {until}"));
                }
            }
        }
    }

    /// Who is asked about other names.
    fn resolver(&self, findings: &mut Findings) -> Option<SocketAddr> {
        let path = self.resolv_conf.display();
        let resolver = match self.resolver {
            Some(resolver) => resolver,
            None => match std::fs::read_to_string(&self.resolv_conf) {
                Ok(text) => match first_server(&text) {
                    Some(address) => SocketAddr::new(address, DNS_PORT),
                    None => {
                        findings.bad(format!("{path} names no name server: nothing is asked"));
                        return None;
                    }
                },
                Err(error) => {
                    findings.bad(format!("{path} cannot be read: {error}"));
                    return None;
                }
            },
        };
        let is_own = |bound: &SocketAddr| {
            let is_all = bound.ip().is_unspecified();
            let is_ours = self.public.contains(&resolver.ip()) || resolver.ip().is_loopback();
            bound.port() == resolver.port() && (bound.ip() == resolver.ip() || (is_all && is_ours))
        };
        if self.dns.iter().any(is_own) {
            findings.bad(format!(
                "this machine asks {resolver}, which is this daemon and finds no other names: name another resolver in {path}"
            ));
            return None;
        }
        if resolver.ip() == STUB {
            findings.good(format!(
                "systemd-resolved is asked on {resolver}; it can stay, as long as DNS listens on other addresses"
            ));
        } else {
            findings.good(format!("the resolver {resolver} is asked"));
        }
        Some(resolver)
    }

    async fn zone(&self, zone: &Zone, resolver: SocketAddr, findings: &mut Findings) {
        match self.delegation(zone, resolver).await {
            Ok(delegation) => self.judge(zone, resolver, delegation, findings).await,
            Err(problem) => findings.bad(problem),
        }
        // Not in any cache: a name that nobody has asked before.
        let label = format!("check-{:x}", Message::query().metadata.id);
        let looked_up = match zone.name.prepend_label(label) {
            Ok(name) => self.look_up(&name, resolver).await,
            Err(error) => Err(error.to_string()),
        };
        match looked_up {
            Ok(()) => findings
                .good("the resolver finds names in the zone, with the addresses of `public`"),
            Err(problem) => findings.bad(problem),
        }
    }

    /// The answer of the servers above the zone to a question about its name servers.
    async fn delegation(&self, zone: &Zone, resolver: SocketAddr) -> Result<Delegation, String> {
        let mut above = zone.name.base_name();
        let servers = loop {
            let answer = ask(resolver, &above, RecordType::NS, true).await?;
            let servers: Vec<Name> = names(&answer.answers, &above).collect();
            if !servers.is_empty() {
                break servers;
            }
            if above.is_root() {
                return Err(format!(
                    "the resolver {resolver} finds no domain above the zone"
                ));
            }
            above = above.base_name();
        };
        let mut last = format!("no name server of {} has an address", shown(&above));
        for server in servers.iter().take(PARENT_SERVERS) {
            for address in addresses_of(server, resolver).await {
                let address = SocketAddr::new(address, self.server_port);
                match ask(address, &zone.name, RecordType::NS, false).await {
                    Ok(answer) => return Ok(Delegation { above, answer }),
                    Err(problem) => last = problem,
                }
            }
        }
        Err(last)
    }

    async fn judge(
        &self,
        zone: &Zone,
        resolver: SocketAddr,
        delegation: Delegation,
        findings: &mut Findings,
    ) {
        let Delegation { above, answer } = delegation;
        let above = shown(&above);
        let records: Vec<Record> = [answer.answers, answer.authorities].concat();
        let servers: Vec<Name> = names(&records, &zone.name).collect();
        if servers.is_empty() {
            return findings.bad(format!(
                "{above} does not delegate the zone: add the records `{zone} NS ns1.{zone}` and `{zone} NS ns2.{zone}` there, and \
                 addresses of both"
            ));
        }
        let named: Vec<_> = servers.iter().map(shown).collect();
        findings.good(format!(
            "{above} delegates the zone to {}",
            named.join(", ")
        ));
        for server in &servers {
            let named = shown(server);
            let glue = addresses(&answer.additionals, server);
            let found = match zone.name.zone_of(server) {
                true if glue.is_empty() => {
                    findings.bad(format!(
                        "{above} has no address of {named} (glue): add `{named} A` with an address of `public` there"
                    ));
                    continue;
                }
                true => glue,
                false => addresses_of(server, resolver).await,
            };
            let foreign = found.iter().find(|it| !self.public.contains(it));
            match (found.is_empty(), foreign) {
                (true, _) => findings.bad(format!("the name server {named} has no address")),
                (false, Some(address)) => findings.bad(format!(
                    "the name server {named} has the address {address}, which is not in `public`"
                )),
                (false, None) => findings.good(format!("the name server {named} is this daemon")),
            }
        }
    }

    /// Asks for a name of ours as strangers do.
    async fn look_up(&self, name: &Name, resolver: SocketAddr) -> Result<(), String> {
        let wanted = match self.public.iter().any(IpAddr::is_ipv4) {
            true => RecordType::A,
            false => RecordType::AAAA,
        };
        let answer = ask(resolver, name, wanted, true).await?;
        let found = addresses(&answer.answers, name);
        let foreign = found.iter().find(|it| !self.public.contains(it));
        match (answer.metadata.response_code, foreign) {
            (ResponseCode::NoError, None) if !found.is_empty() => Ok(()),
            (ResponseCode::NoError, Some(address)) => Err(format!(
                "the resolver finds {address} for a name in the zone, which is not in `public`"
            )),
            (ResponseCode::NoError, None) => {
                Err("the resolver finds no address for a name in the zone".to_owned())
            }
            (ResponseCode::ServFail, _) => Err(
                "the resolver gets no answer from the name servers of the zone: is port 53 open, for UDP and for TCP?"
                    .to_owned(),
            ),
            (code, _) => Err(format!("the resolver answers a name in the zone with: {code}")),
        }
    }
}

struct Delegation {
    above: Name,
    answer: Message,
}

/// The first name server of a `resolv.conf`.
fn first_server(text: &str) -> Option<IpAddr> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let address = (words.next() == Some("nameserver")).then(|| words.next())??;
        // An IPv6 address may name an interface.
        address.split('%').next()?.parse().ok()
    })
}

/// The name servers of a domain in some records.
fn names(records: &[Record], of: &Name) -> impl Iterator<Item = Name> {
    records.iter().filter_map(move |record| match &record.data {
        RData::NS(server) if record.name == *of => Some(server.0.clone()),
        _ => None,
    })
}

/// The addresses of a name in some records, or of the name that it stands for.
fn addresses(records: &[Record], of: &Name) -> Vec<IpAddr> {
    let alias = records.iter().find_map(|record| match &record.data {
        RData::CNAME(name) if record.name == *of => Some(name.0.clone()),
        _ => None,
    });
    let of = alias.as_ref().unwrap_or(of);
    let found = records.iter().filter(|record| record.name == *of);
    let found = found.filter_map(|record| match &record.data {
        RData::A(address) => Some(IpAddr::V4(address.0)),
        RData::AAAA(address) => Some(IpAddr::V6(address.0)),
        _ => None,
    });
    found.collect()
}

async fn addresses_of(name: &Name, resolver: SocketAddr) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for kind in [RecordType::A, RecordType::AAAA] {
        if let Ok(answer) = ask(resolver, name, kind, true).await {
            found.extend(addresses(&answer.answers, name));
        }
    }
    found
}

fn shown(name: &Name) -> String {
    match name.is_root() {
        true => "the root".to_owned(),
        false => name.to_string().trim_end_matches('.').to_owned(),
    }
}
