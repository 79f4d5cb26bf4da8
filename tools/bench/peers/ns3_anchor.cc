// Yardstick scenarios for ns-3 (3.37 or later). See README.md.
//   ns3_anchor --scen=a|b|c|d [--seed=1] [--iw=10] [--count=1] [--sched=ns3::HeapScheduler] [--msl=1]
// a  1 flow,   100 MB, 100 Mbit/s, 20 ms RTT, no loss
// b  1 flow,   5 MB, 384/64 kbit/s, 300 ms RTT (propagation), 1 % random loss on the down link
// c  100 flows of 1 MB through a 100 Mbit/s bottleneck, 50 ms RTT, drop-tail of 417 packets
// d  1000 clients (25 edge routers x 40), 20 objects of 10240 B each, one connection per object
// --count=1 adds trace sinks (packets, retransmissions, recoveries, RTOs): do not time with it.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <vector>

using namespace ns3;

static uint64_t g_hops, g_dataPkts, g_dataBytes, g_rxDrops, g_qDrops, g_recov, g_loss;
static bool g_count;

static void OnTx(Ptr<const Packet> p)
{
    g_hops++;
    uint32_t n = p->GetSize(); // 20 IP + 20 TCP + 2 PPP, no options on data segments (timestamps off)
    if (n > 100) { g_dataPkts++; g_dataBytes += n - 42; }
}
static void OnTxHopOnly(Ptr<const Packet>) { g_hops++; }
static void OnRxDrop(Ptr<const Packet>) { g_rxDrops++; }
static void OnQDrop(Ptr<const Packet>) { g_qDrops++; }
static void OnCong(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t n)
{
    if (n == TcpSocketState::CA_RECOVERY) g_recov++;
    if (n == TcpSocketState::CA_LOSS) g_loss++;
}

// ---- bulk sender / receiver (raw socket callbacks, no Application objects) ----
struct Bulk
{
    Ptr<Node> snd, rcv;
    Address dst;
    uint16_t port;
    uint64_t size, sent = 0, got = 0;
    double t0 = 0, tEnd = -1;
    Ptr<Socket> ls, ss;

    void Listen()
    {
        ls = Socket::CreateSocket(rcv, TcpSocketFactory::GetTypeId());
        ls->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        ls->Listen();
        ls->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(), MakeCallback(&Bulk::Accept, this));
    }
    void Accept(Ptr<Socket> s, const Address&) { s->SetRecvCallback(MakeCallback(&Bulk::Recv, this)); }
    void Recv(Ptr<Socket> s)
    {
        while (Ptr<Packet> p = s->Recv())
        {
            if (p->GetSize() == 0) break;
            got += p->GetSize();
        }
        if (got >= size && tEnd < 0) tEnd = Simulator::Now().GetSeconds();
    }
    void Start()
    {
        t0 = Simulator::Now().GetSeconds();
        ss = Socket::CreateSocket(snd, TcpSocketFactory::GetTypeId());
        ss->Bind();
        ss->SetSendCallback(MakeCallback(&Bulk::CanSend, this));
        ss->SetConnectCallback(MakeCallback(&Bulk::Connected, this), MakeNullCallback<void, Ptr<Socket>>());
        if (g_count) ss->TraceConnectWithoutContext("CongState", MakeCallback(&OnCong));
        ss->Connect(InetSocketAddress(Ipv4Address::ConvertFrom(dst), port));
    }
    void Connected(Ptr<Socket> s) { Fill(s); }
    void CanSend(Ptr<Socket> s, uint32_t) { Fill(s); }
    void Fill(Ptr<Socket> s)
    {
        while (sent < size)
        {
            uint32_t n = (uint32_t)std::min<uint64_t>(size - sent, 14600);
            if (s->GetTxAvailable() < n) return;
            int r = s->Send(Create<Packet>(n));
            if (r <= 0) return;
            sent += r;
        }
        if (sent == size) { sent++; s->Close(); }
    }
};

// ---- web-like client / server: 300 B request, 10240 B answer, server closes ----
static const uint32_t REQ = 300, OBJ = 10240;
static uint32_t NOBJ = 20;
struct WebServer
{
    Ptr<Socket> ls;
    std::map<Ptr<Socket>, uint32_t> in;
    void Start(Ptr<Node> n)
    {
        ls = Socket::CreateSocket(n, TcpSocketFactory::GetTypeId());
        ls->Bind(InetSocketAddress(Ipv4Address::GetAny(), 80));
        ls->Listen();
        ls->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(), MakeCallback(&WebServer::Accept, this));
    }
    void Accept(Ptr<Socket> s, const Address&) { s->SetRecvCallback(MakeCallback(&WebServer::Recv, this)); }
    void Recv(Ptr<Socket> s)
    {
        uint32_t& n = in[s];
        while (Ptr<Packet> p = s->Recv())
        {
            if (p->GetSize() == 0) break;
            n += p->GetSize();
        }
        if (n >= REQ)
        {
            in.erase(s);
            s->SetRecvCallback(MakeNullCallback<void, Ptr<Socket>>());
            s->Send(Create<Packet>(OBJ));
            s->Close();
        }
    }
};
struct WebClient
{
    Ptr<Node> node;
    Ipv4Address server;
    uint32_t done = 0, got = 0;
    double t0 = 0, tEnd = -1;
    Ptr<Socket> s;
    void Next()
    {
        if (done == 0) t0 = Simulator::Now().GetSeconds();
        got = 0;
        s = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        s->Bind();
        s->SetConnectCallback(MakeCallback(&WebClient::Connected, this), MakeNullCallback<void, Ptr<Socket>>());
        s->SetRecvCallback(MakeCallback(&WebClient::Recv, this));
        s->Connect(InetSocketAddress(server, 80));
    }
    void Connected(Ptr<Socket> k) { k->Send(Create<Packet>(REQ)); }
    void Recv(Ptr<Socket> k)
    {
        while (Ptr<Packet> p = k->Recv())
        {
            if (p->GetSize() == 0) break;
            got += p->GetSize();
        }
        if (got >= OBJ && k == s)
        {
            k->SetRecvCallback(MakeNullCallback<void, Ptr<Socket>>());
            k->Close();
            s = nullptr;
            if (++done == NOBJ) tEnd = Simulator::Now().GetSeconds();
            else Simulator::ScheduleNow(&WebClient::Next, this);
        }
    }
};

static void Watch(NetDeviceContainer d, bool data)
{
    if (!g_count) return;
    for (uint32_t i = 0; i < d.GetN(); i++)
    {
        if (data) d.Get(i)->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&OnTx));
        else d.Get(i)->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&OnTxHopOnly));
        d.Get(i)->TraceConnectWithoutContext("PhyRxDrop", MakeCallback(&OnRxDrop));
        DynamicCast<PointToPointNetDevice>(d.Get(i))->GetQueue()->TraceConnectWithoutContext("Drop", MakeCallback(&OnQDrop));
    }
}
static Ipv4InterfaceContainer Link(PointToPointHelper& p, Ptr<Node> a, Ptr<Node> b, const std::string& net, NetDeviceContainer* out, bool data = false)
{
    NetDeviceContainer d = p.Install(a, b);
    Ipv4AddressHelper ah;
    ah.SetBase(net.c_str(), "255.255.255.252");
    Ipv4InterfaceContainer ic = ah.Assign(d);
    TrafficControlHelper tc;
    tc.Uninstall(d);
    Watch(d, data);
    if (out) *out = d;
    return ic;
}
static double Pct(std::vector<double> v, double q)
{
    std::sort(v.begin(), v.end());
    return v[std::min(v.size() - 1, (size_t)(q * v.size()))];
}

int main(int argc, char** argv)
{
    std::string scen = "a", sched, cc = "ns3::TcpNewReno", rec = "ns3::TcpClassicRecovery";
    uint32_t seed = 1, iw = 10;
    bool sack = true;
    uint64_t size = 0;
    double msl = 120;
    CommandLine cmd;
    cmd.AddValue("scen", "", scen);
    cmd.AddValue("seed", "", seed);
    cmd.AddValue("iw", "", iw);
    cmd.AddValue("sack", "", sack);
    cmd.AddValue("count", "", g_count);
    cmd.AddValue("sched", "", sched);
    cmd.AddValue("cc", "", cc);
    cmd.AddValue("rec", "", rec);
    cmd.AddValue("nobj", "objects per client in d", NOBJ);
    cmd.AddValue("msl", "maximum segment lifetime, seconds (TIME_WAIT is twice that)", msl);
    cmd.AddValue("size", "override bytes per flow", size);
    cmd.Parse(argc, argv);

    RngSeedManager::SetSeed(12345);
    RngSeedManager::SetRun(seed);
    if (!sched.empty()) { ObjectFactory f; f.SetTypeId(sched); Simulator::SetScheduler(f); }
    uint32_t buf = scen == "a" ? 400000 : (scen == "b" ? 65535 : 1000000);
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(iw));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buf));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buf));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(sack));
    Config::SetDefault("ns3::TcpSocketBase::MaxSegLifetime", DoubleValue(msl));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(cc)));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TypeId::LookupByName(rec)));
    Config::SetDefault("ns3::DropTailQueue<Packet>::MaxSize", QueueSizeValue(QueueSize("2000p")));

    InternetStackHelper ish;
    std::vector<std::unique_ptr<Bulk>> flows;
    std::vector<std::unique_ptr<WebClient>> clients;
    WebServer web;
    PointToPointHelper p2p;
    Ptr<UniformRandomVariable> u = CreateObject<UniformRandomVariable>();
    u->SetStream(77);
    Ipv4StaticRoutingHelper srh;

    auto addFlow = [&](Ptr<Node> a, Ptr<Node> b, Ipv4Address ad, uint16_t port, uint64_t n, double t) {
        auto f = std::make_unique<Bulk>();
        f->snd = a; f->rcv = b; f->dst = ad; f->port = port; f->size = size ? size : n;
        f->Listen();
        Simulator::Schedule(Seconds(t), &Bulk::Start, f.get());
        flows.push_back(std::move(f));
    };

    if (scen == "a" || scen == "b")
    {
        NodeContainer n;
        n.Create(2);
        ish.Install(n);
        p2p.SetDeviceAttribute("DataRate", StringValue(scen == "a" ? "100Mbps" : "384kbps"));
        p2p.SetChannelAttribute("Delay", StringValue(scen == "a" ? "10ms" : "150ms"));
        NetDeviceContainer d;
        auto ic = Link(p2p, n.Get(0), n.Get(1), "10.0.0.0", &d, true);
        if (scen == "b")
        {
            d.Get(1)->SetAttribute("DataRate", StringValue("64kbps"));
            Ptr<RateErrorModel> em = CreateObject<RateErrorModel>();
            em->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
            em->SetRate(0.01);
            d.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(em));
        }
        addFlow(n.Get(0), n.Get(1), ic.GetAddress(1), 5001, scen == "a" ? 100000000 : 5000000, 0);
    }
    else if (scen == "c")
    {
        const int N = 100;
        NodeContainer l, r, c;
        l.Create(N); r.Create(N); c.Create(2);
        ish.Install(l); ish.Install(r); ish.Install(c);
        PointToPointHelper bp;
        bp.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
        bp.SetChannelAttribute("Delay", StringValue("23ms"));
        bp.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("417p"));
        p2p.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
        p2p.SetChannelAttribute("Delay", StringValue("1ms"));
        auto bi = Link(bp, c.Get(0), c.Get(1), "10.0.0.0", nullptr, true);
        srh.GetStaticRouting(c.Get(0)->GetObject<Ipv4>())->SetDefaultRoute(bi.GetAddress(1), 1);
        srh.GetStaticRouting(c.Get(1)->GetObject<Ipv4>())->SetDefaultRoute(bi.GetAddress(0), 1);
        for (int i = 0; i < N; i++)
        {
            auto a = Link(p2p, l.Get(i), c.Get(0), "10.1." + std::to_string(i) + ".0", nullptr);
            auto b = Link(p2p, r.Get(i), c.Get(1), "10.2." + std::to_string(i) + ".0", nullptr);
            srh.GetStaticRouting(l.Get(i)->GetObject<Ipv4>())->SetDefaultRoute(a.GetAddress(1), 1);
            srh.GetStaticRouting(r.Get(i)->GetObject<Ipv4>())->SetDefaultRoute(b.GetAddress(1), 1);
            addFlow(l.Get(i), r.Get(i), b.GetAddress(0), 5001, 1000000, u->GetValue(0, 0.1));
        }
    }
    else
    {
        const int E = 25, C = 40;
        NodeContainer srv, core, edge;
        srv.Create(1); core.Create(1); edge.Create(E);
        ish.Install(srv); ish.Install(core); ish.Install(edge);
        p2p.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
        p2p.SetChannelAttribute("Delay", StringValue("1ms"));
        PointToPointHelper cp;
        cp.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
        cp.SetChannelAttribute("Delay", StringValue("18ms"));
        auto si = Link(p2p, srv.Get(0), core.Get(0), "10.0.0.0", nullptr);
        srh.GetStaticRouting(srv.Get(0)->GetObject<Ipv4>())->SetDefaultRoute(si.GetAddress(1), 1);
        web.Start(srv.Get(0));
        for (int e = 0; e < E; e++)
        {
            auto ei = Link(p2p, core.Get(0), edge.Get(e), "10.200." + std::to_string(e) + ".0", nullptr);
            std::string net = "10." + std::to_string(e + 1) + ".0.0";
            srh.GetStaticRouting(core.Get(0)->GetObject<Ipv4>())->AddNetworkRouteTo(net.c_str(), "255.255.0.0", ei.GetAddress(1), e + 2);
            srh.GetStaticRouting(edge.Get(e)->GetObject<Ipv4>())->SetDefaultRoute(ei.GetAddress(0), 1);
            NodeContainer cl;
            cl.Create(C);
            ish.Install(cl);
            for (int k = 0; k < C; k++)
            {
                auto ci = Link(cp, cl.Get(k), edge.Get(e), "10." + std::to_string(e + 1) + "." + std::to_string(k) + ".0", nullptr);
                srh.GetStaticRouting(cl.Get(k)->GetObject<Ipv4>())->SetDefaultRoute(ci.GetAddress(1), 1);
                auto w = std::make_unique<WebClient>();
                w->node = cl.Get(k);
                w->server = si.GetAddress(0);
                Simulator::Schedule(Seconds(u->GetValue(0, 10)), &WebClient::Next, w.get());
                clients.push_back(std::move(w));
            }
        }
    }
    Simulator::Stop(Seconds(4000));
    Simulator::Run();
    uint64_t ev = Simulator::GetEventCount();
    printf("scen=%s seed=%u iw=%u events=%llu", scen.c_str(), seed, iw, (unsigned long long)ev);
    std::vector<double> t;
    for (auto& f : flows) t.push_back(f->tEnd < 0 ? 1e9 : f->tEnd - f->t0);
    for (auto& c : clients) t.push_back(c->tEnd < 0 ? 1e9 : c->tEnd - c->t0);
    double last = 0;
    for (auto& f : flows) last = std::max(last, f->tEnd);
    for (auto& c : clients) last = std::max(last, c->tEnd);
    double sum = 0;
    for (double x : t) sum += x;
    printf(" n=%zu t_min=%.4f t_med=%.4f t_mean=%.4f t_p95=%.4f t_max=%.4f last_end=%.4f", t.size(), Pct(t, 0), Pct(t, .5), sum / t.size(), Pct(t, .95), Pct(t, 1), last);
    if (g_count)
    {
        uint64_t want = 0;
        for (auto& f : flows) want += f->size;
        printf(" hops=%llu", (unsigned long long)g_hops);
        if (scen != "d")
            printf(" data_pkts=%llu rexmit_bytes=%lld err_drops=%llu q_drops=%llu recov=%llu rto=%llu", (unsigned long long)g_dataPkts,
                   (long long)g_dataBytes - (long long)want, (unsigned long long)g_rxDrops, (unsigned long long)g_qDrops, (unsigned long long)g_recov, (unsigned long long)g_loss);
        else printf(" q_drops=%llu", (unsigned long long)g_qDrops);
    }
    printf("\n");
    Simulator::Destroy();
    return 0;
}
