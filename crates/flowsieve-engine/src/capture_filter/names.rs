//! Numbers, and names of numbers: tables of pairs `name=number`.

/// Names of offsets, types and flags in arithmetic.
pub(super) const CONSTANTS: &str = "\
    tcpflags=13 tcp-fin=0x01 tcp-syn=0x02 tcp-rst=0x04 tcp-push=0x08 tcp-ack=0x10 tcp-urg=0x20 \
    tcp-ece=0x40 tcp-cwr=0x80 icmptype=0 icmpcode=1 icmp-echoreply=0 icmp-unreach=3 \
    icmp-sourcequench=4 icmp-redirect=5 icmp-echo=8 icmp-routeradvert=9 icmp-routersolicit=10 \
    icmp-timxceed=11 icmp-paramprob=12 icmp-tstamp=13 icmp-tstampreply=14 icmp-ireq=15 \
    icmp-ireqreply=16 icmp-maskreq=17 icmp-maskreply=18 icmp6type=0 icmp6code=1 \
    icmp6-destinationunreach=1 icmp6-packettoobig=2 icmp6-timeexceeded=3 icmp6-parameterproblem=4 \
    icmp6-echo=128 icmp6-echoreply=129 icmp6-multicastlistenerquery=130 \
    icmp6-multicastlistenerreportv1=131 icmp6-multicastlistenerdone=132 icmp6-routersolicit=133 \
    icmp6-routeradvert=134 icmp6-neighborsolicit=135 icmp6-neighboradvert=136 icmp6-redirect=137 \
    icmp6-routerrenum=138 icmp6-nodeinformationquery=139 icmp6-nodeinformationresponse=140 \
    icmp6-ineighbordiscoverysolicit=141 icmp6-ineighbordiscoveryadvert=142 \
    icmp6-multicastlistenerreportv2=143 icmp6-homeagentdiscoveryrequest=144 \
    icmp6-homeagentdiscoveryreply=145 icmp6-mobileprefixsolicit=146 icmp6-mobileprefixadvert=147 \
    icmp6-certpathsolicit=148 icmp6-certpathadvert=149 icmp6-multicastrouteradvert=151 \
    icmp6-multicastroutersolicit=152 icmp6-multicastroutertermination=153";

/// Ports by the names of the services that use them. Users say `dns`, the registered name is `domain`.
const PORTS: &str = "\
    echo=7 discard=9 daytime=13 chargen=19 ftp-data=20 ftp=21 ssh=22 telnet=23 smtp=25 time=37 \
    whois=43 tacacs=49 domain=53 dns=53 bootps=67 bootpc=68 tftp=69 gopher=70 finger=79 http=80 \
    kerberos=88 pop3=110 sunrpc=111 auth=113 nntp=119 ntp=123 epmap=135 netbios-ns=137 \
    netbios-dgm=138 netbios-ssn=139 imap2=143 imap=143 snmp=161 snmp-trap=162 snmptrap=162 \
    bgp=179 ldap=389 https=443 microsoft-ds=445 submissions=465 isakmp=500 syslog=514 printer=515 \
    rip=520 submission=587 ipp=631 ldaps=636 domain-s=853 rsync=873 ftps=990 imaps=993 pop3s=995 \
    socks=1080 openvpn=1194 ms-sql-s=1433 l2tp=1701 radius=1812 radius-acct=1813 nfs=2049 \
    gtp-user=2152 iscsi-target=3260 mysql=3306 ms-wbt-server=3389 teredo=3544 ipsec-nat-t=4500 \
    vxlan=4789 sip=5060 sip-tls=5061 xmpp-client=5222 mdns=5353 llmnr=5355 postgresql=5432 \
    amqp=5672 x11=6000 geneve=6081 redis=6379 http-alt=8080";

/// Protocols of IP.
pub(super) const PROTOCOLS: &str = "\
    icmp=1 igmp=2 ipip=4 tcp=6 egp=8 igrp=9 udp=17 ipv6=41 rsvp=46 gre=47 esp=50 ah=51 icmp6=58 \
    ipv6-icmp=58 eigrp=88 ospf=89 pim=103 vrrp=112 carp=112 l2tp=115 sctp=132 udplite=136";

/// Protocols of Ethernet: `EtherType`s, or service access points below 1501.
pub(super) const ETHER_TYPES: &str = "\
    ip=0x0800 arp=0x0806 mopdl=0x6001 moprc=0x6002 decnet=0x6003 lat=0x6004 sca=0x6007 \
    rarp=0x8035 atalk=0x809b aarp=0x80f3 vlan=0x8100 ip6=0x86dd ipv6=0x86dd mpls=0x8847 \
    pppoed=0x8863 pppoes=0x8864 loopback=0x9000 stp=0x42";

/// Returns the number that has a name in a table.
pub(super) fn find(names: &str, name: &str) -> Option<u32> {
    let mut pairs = names.split_whitespace().filter_map(|pair| pair.split_once('='));
    let (_, found) = pairs.find(|(known, _)| *known == name)?;
    number(found)
}

/// Returns the number of a port.
pub fn port(name: &str) -> Option<u16> {
    find(PORTS, name).map(|number| number as u16)
}

/// Parses a decimal, hexadecimal or octal number; `None` if it is too large or has a wrong digit.
pub(super) fn number(text: &str) -> Option<u32> {
    if let Some(digits) = hexadecimal(text) {
        return u32::from_str_radix(digits, 16).ok();
    }
    let radix = if text.starts_with('0') { 8 } else { 10 };
    u32::from_str_radix(text, radix).ok()
}

/// Returns the digits of a hexadecimal number.
pub(super) fn hexadecimal(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}
